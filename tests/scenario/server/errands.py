"""What chat front ends send besides questions, in short: of each known prompt its beginning, its marks and its end."""

import json
from typing import Any, NamedTuple

from openassay.server import completions

TITLE = "How fast is the universe expanding"
_TALK = f"USER: {TITLE}?\nASSISTANT: About 70 km/s/Mpc."
_LINES = f"User: {TITLE}?\nAI: About 70."


class Errand(NamedTuple):
    messages: list[dict[str, str]]
    expected: str
    more: dict[str, Any] = {}


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def _webui(task: str, form: str, expected: object) -> Errand:
    prompt = f"""### Task:
{task}
### Guidelines:
- Use the chat's primary language; default to English if multilingual.
### Output:
JSON format: {form}
### Chat History:
<chat_history>
{_TALK}
</chat_history>"""
    return Errand([_user(prompt)], json.dumps(expected))


ERRANDS = {
    "Open WebUI, title": _webui(
        "Generate a concise title summarizing the chat history.", '{ "title": "your concise title" }', {"title": TITLE}
    ),
    "Open WebUI, title with an emoji": _webui(
        "Generate a concise, 3-5 word title with an emoji.", '{ "title": "your concise title" }', {"title": TITLE}
    ),
    "Open WebUI, tags": _webui(
        "Generate 1-3 broad tags categorizing the main themes.", '{ "tags": ["tag1", "tag2"] }', {"tags": ["Research"]}
    ),
    "Open WebUI, what to ask next": _webui(
        "Suggest 3-5 relevant follow-up questions.", '{ "follow_ups": ["Question 1?"] }', {"follow_ups": []}
    ),
    "Open WebUI, queries": _webui(
        "Analyze the chat history to determine the necessity of generating search queries.",
        '{ "queries": ["query1", "query2"] }',
        {"queries": []},
    ),
    "Open WebUI, autocompletion": Errand(
        [
            _user(
                "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n"
                'Respond only in JSON format: `{ "text": "<your_completion>" }`.\n'
                f"<chat_history>\n{_TALK}\n</chat_history>\n<type>General</type>\n<text>How fast is</text>"
            )
        ],
        '{"text": ""}',
    ),
    "Open WebUI, tools": Errand(
        [
            _system("Available Tools: []\n\nYour task is to choose and return the correct tool(s) from the list."),
            _user(f'Query: History:\n{_TALK}\nQuery: """{TITLE}?"""'),
        ],
        '{"tool_calls": []}',
    ),
    "Open WebUI, as it says itself": Errand(
        [_user(f"{TITLE}?")], json.dumps({"title": TITLE}), {"metadata": {"task": "title_generation"}}
    ),
    "LibreChat, completion": Errand(
        [
            _user(
                "Provide a concise, 5-word-or-less title for the conversation, using its same language, with no"
                " punctuation. Apply title case conventions and only return the title itself.\n\n"
                f"Conversation:\n{_LINES}"
            )
        ],
        TITLE,
    ),
    "LibreChat, structured": Errand(
        [
            _user(
                "Analyze this conversation and provide:\n1. The detected language of the conversation\n"
                f"2. A concise title in the detected language (5 words or less)\n\n{_LINES}"
            )
        ],
        json.dumps({"language": "", "title": TITLE}),
    ),
    "LobeChat": Errand(
        [
            _system(
                "You are a professional conversation summarizer. Generate a concise title that captures the essence.\n"
                '- Return one JSON object with a single "title" string'
            ),
            _user(
                "<task>\nGenerate a concise title.\n</task>\n\n<conversation>\n"
                f"<user>\n{TITLE}?\n</user>\n<assistant>\nAbout 70.\n</assistant>\n</conversation>"
            ),
        ],
        json.dumps({"title": TITLE}),
    ),
    "LobeChat, as it was": Errand(
        [
            _system("You are an assistant who needs to summarize user conversations into titles within 10 characters."),
            _user(f"user: {TITLE}?\nassistant: About 70.\n\nPlease summarize the above, output language: en-US"),
        ],
        TITLE,
    ),
    "a trial of the connection": Errand([_user("Hi")], completions.SHORT_ANSWER, {"max_tokens": 5}),
}
