"""The way to the web and back: every connection checked, every answer bounded, every host asked politely."""
