"""A figure within a page: an SVG as an element of HTML that shares its page with others."""

from __future__ import annotations

import re
from xml.etree import ElementTree

#: What of an SVG says something of its whole document, which here is the page.
OF_DOCUMENTS = ("metadata", "style")

#: The letters that a file's name may have, but XML may not.
UNWRITABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")

#: How clip paths and hatches are named by what has them, and markers by where they are. What else
#: may be there is an image, as its data.
NAMED = re.compile(r"url\(#([^)]+)\)")
PLACED, HERE = "href", "#"


def inlined(svg: str, name: str, said: str) -> str:
    """Return an SVG as an element of HTML that says to who does not see it what it shows.

    Its ids begin with a name, so that none is another figure's; what nobody names has none.
    """
    root = ElementTree.fromstring(UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", svg))
    for element in root.iter():
        for child in [*element]:
            if _local(child.tag) in OF_DOCUMENTS:
                element.remove(child)
    elements = [*root.iter()]
    for element in elements:
        # In HTML these elements need no names of their XML namespaces.
        element.tag = _local(element.tag)
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
    used = {id for element in elements for id in _names(element.attrib)}
    for element in elements:
        if element.attrib.get("id") not in used:
            element.attrib.pop("id", None)
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, f"{name}-{value}")
            elif key == PLACED and value.startswith(HERE):
                element.set(key, f"{HERE}{name}-{value.removeprefix(HERE)}")
            else:
                element.set(key, NAMED.sub(rf"url(#{name}-\1)", value))
    root.attrib |= {"role": "img", "aria-label": said}
    return ElementTree.tostring(root, encoding="unicode")


def _names(attributes: dict[str, str]) -> list[str]:
    """Return the ids that the attributes of an element name."""
    found = [id for value in attributes.values() for id in NAMED.findall(value)]
    if (placed := attributes.get(PLACED, "")).startswith(HERE):
        found.append(placed.removeprefix(HERE))
    return found


def _local(name: str) -> str:
    return name.rpartition("}")[2]
