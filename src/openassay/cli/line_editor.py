"""A line typed at the terminal, while the event loop goes on. Imported only where somebody is asked: it costs 0.1 s."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import is_dumb_terminal

from openassay.cli import STOPPED

_COLOUR = "ansicyan"  # of what stands before the cursor


class LineEditor:
    """Editing, history and completion; Ctrl-C clears what was typed.

    `line` raises EOFError for Ctrl-D and KeyboardInterrupt for Ctrl-C, both on an empty line, and TimeoutError when
    `until` is past."""

    def __init__(self, *, history: Path | None = None, commands: Mapping[str, str] | None = None) -> None:
        kept: History = InMemoryHistory()
        if history:
            # What people ask is nobody else's business, so the file is made before anything can be written to it.
            with suppress(OSError):
                os.close(os.open(history, os.O_CREAT | os.O_RDONLY, 0o600))
                kept = _TolerantFileHistory(history)
        # Questions go to stderr, so that an answer can be redirected. Terminals that do not say where their cursor is
        # would be warned about for every prompt: none is asked.
        output = None if is_dumb_terminal() else create_output(sys.stderr)
        if isinstance(output, Vt100_Output):
            output.enable_cpr = False
        keys = KeyBindings()

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                event.app.exit(exception=KeyboardInterrupt)

        self._session: PromptSession[str] = PromptSession(
            history=kept,
            auto_suggest=AutoSuggestFromHistory() if history else None,
            completer=WordCompleter([*commands], ignore_case=True, meta_dict=commands, sentence=True)
            if commands
            else None,
            complete_while_typing=Condition(lambda: self._session.default_buffer.text.startswith("/")),
            key_bindings=keys,
            reserve_space_for_menu=6,
            output=output,
        )

    async def read_line(self, before: str, *, until: datetime | None = None) -> str:
        seconds = max((until - datetime.now(UTC)).total_seconds(), 0) if until else None
        loop, task, ended = asyncio.get_running_loop(), asyncio.current_task(), []

        def end() -> None:
            ended.append(True)
            if task is not None:
                task.cancel()

        loop.add_signal_handler(signal.SIGTERM, end)  # whoever ends the process gets the terminal back as it was
        try:
            async with asyncio.timeout(seconds):
                return await self._session.prompt_async(FormattedText([(_COLOUR, before)]))
        except asyncio.CancelledError:
            if ended:
                raise typer.Exit(STOPPED) from None
            raise
        finally:
            loop.remove_signal_handler(signal.SIGTERM)


class _TolerantFileHistory(FileHistory):
    """A disk that is full costs the history, not the conversation."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)
