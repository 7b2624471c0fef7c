"""Where hits come from. Each source is one file behind `ports.Source`, registered as an entry point."""
