"""Structures of Thrift's compact protocol, in which Parquet writes what it says of itself."""

from __future__ import annotations

from typing import Any

Fields = dict[int, Any]


class Reader:
    """Reads structures of Thrift's compact protocol, each number in its shortest form."""

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self.content, self.at, self.end = content, at, end

    def structure(self, depth: int = 0) -> Fields:
        """Fields by their number; each may occur once, in rising order."""
        if depth > 8:
            raise ValueError("too deep")
        found: Fields = {}
        last = 0
        while (head := self._byte()) != 0:
            number = last + (head >> 4) if head >> 4 else self._signed()
            if number <= last:
                raise ValueError("fields out of order")
            found[number] = self._value(head & 15, depth)
            last = number
        return found

    def _byte(self) -> int:
        if self.at >= self.end:
            raise ValueError("cut off")
        self.at += 1
        return self.content[self.at - 1]

    def whole(self) -> int:
        """A number in its shortest form."""
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                if (byte == 0 and shift > 7) or shift > 70:
                    raise ValueError("a number that is longer than it needs to be")
                return found

    def _signed(self) -> int:
        found = self.whole()
        return found >> 1 ^ -(found & 1)

    def _bytes(self) -> bytes:
        length = self.whole()
        if length > self.end - self.at:
            raise ValueError("cut off")
        self.at += length
        return self.content[self.at - length : self.at]

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 8:
                return self._bytes()
            case 9:
                head = self._byte()
                size = head >> 4 if head >> 4 < 15 else self.whole()
                if size > self.end - self.at:
                    raise ValueError("cut off")
                return [self._value(head & 15, depth + 1) for _ in range(size)]
            case 12:
                return self.structure(depth + 1)
        raise ValueError("a type that no release has")
