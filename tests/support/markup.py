"""HTML as a tree, so that tests read what a person would see, and markup that slipped in shows up as elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Element:
    """One element: its name, attributes, and what is in it."""

    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def find(self, name: str | None = None, **attributes: str) -> list[Element]:
        """The elements in it with this name and these attributes (`data_x` stands for `data-x`), in order."""
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [
            element
            for element in self._inner()
            if name in (None, element.name) and wanted.items() <= element.attributes.items()
        ]

    def figures(self) -> dict[str, str]:
        """The text of each metric shown in it. Every metric may be shown only once."""
        shown = [element for element in self._inner() if "data-metric" in element.attributes]
        figures = {str(element.attributes["data-metric"]): element.text for element in shown}
        assert len(figures) == len(shown)
        return figures

    def names(self) -> set[str]:
        """The names of all elements in it."""
        return {element.name for element in self._inner()}

    def _inner(self) -> Iterator[Element]:
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child._inner()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Element:
    """The elements of `html`, in a nameless one. Every element must be closed."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].name}> is not closed"
    return reader.open[0]
