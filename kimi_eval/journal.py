"""Journal: the exchanges of a run on disk, appended as they end, so that a kill loses none that was complete.

While a run goes on they stand one after another in ``journal.gz``, each a gzip member of its own: appending is some
thirty times cheaper than a file for each. When it ends each gets a file, ``ID.gz``, which the scorecard links to.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from kimi_eval import transcript
from kimi_eval.transcript import Exchange

_NAME = "journal.gz"
_STEP = 1 << 20  # bytes read at once


class Journal:
    """All exchanges of one run folder: those of an earlier part of the run, and those that are added.

    Safe to use from several threads. Raises OSError where the folder cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / _NAME
        self._places: dict[str, tuple[int, int]] = {}
        self._files = {path.name.removesuffix(".gz") for path in folder.glob("*.gz")} - {"journal"}
        self._lock = threading.Lock()
        if self._path.exists():
            self._recover()
        self._file = self._path.open("ab", buffering=0)

    def _recover(self) -> None:
        """Finds every complete member; what a kill left half written at the end is cut off."""
        good = 0
        for start, end in _members(self._path):
            try:
                exchange = transcript.decode(self._bytes(start, end))
            except ValueError:
                break
            self._places[exchange.id] = (start, end)
            good = end
        with self._path.open("r+b") as file:
            file.truncate(good)

    def _bytes(self, start: int, end: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def add(self, exchange: Exchange) -> None:
        """Puts one exchange on disk; a later one of the same id takes its place.

        After `close` it does nothing: what a thread still had in hand then is asked again on resuming.
        """
        data = transcript.encode(exchange)
        with self._lock:
            if self._file.closed:
                return
            start = self._file.seek(0, 2)
            self._file.write(data)
            self._places[exchange.id] = (start, start + len(data))
            self._files.discard(exchange.id)

    def get(self, id: str) -> Exchange | None:
        """The exchange of that id, or None where there is none, or only a damaged one."""
        try:
            if id in self._places:
                return transcript.decode(self._bytes(*self._places[id]))
            if id in self._files:
                return transcript.load(self.folder / f"{id}.gz")
        except ValueError:
            return None
        return None

    def close(self) -> None:
        """Gives every exchange a file of its own and removes the journal."""
        with self._lock:
            if self._file.closed:
                return
            with self._path.open("rb") as journal:
                for id, (start, end) in self._places.items():
                    journal.seek(start)
                    # Cut short by a kill, such a file is not read: the journal is still there, and goes first.
                    (self.folder / f"{id}.gz").write_bytes(journal.read(end - start))
            self._files.update(self._places)
            self._places.clear()
            self._file.close()
            self._path.unlink(missing_ok=True)


def _members(path: Path) -> Iterator[tuple[int, int]]:
    """The (start, end) of every complete gzip member of a file; stops at the first that is damaged or cut."""
    with path.open("rb") as file:
        start = end = 0
        data = b""
        while True:
            decoder = zlib.decompressobj(wbits=31)
            while not decoder.eof:
                data = data or file.read(_STEP)
                if not data:
                    return
                end += len(data)
                try:
                    decoder.decompress(data)
                except zlib.error:
                    return
                data = decoder.unused_data
            end -= len(data)
            yield start, end
            start = end
