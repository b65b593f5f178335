"""Turtle and JSON-LD say the same, whatever stands in a text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Graph as RdfGraph
from rdflib.compare import isomorphic

from incrowd.release.metadata.codebook import XmlElement
from incrowd.release.metadata.rdf import Graph, Iri, Literal, Resource

pytestmark = pytest.mark.filterwarnings("ignore")  # of rdflib
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=30)


@settings(max_examples=60, deadline=None)
@given(text=TEXTS, path=TEXTS)
def test_both_forms_hold_the_text(text: str, path: str) -> None:
    inner = Resource(["ex:Inner"], [("ex:says", Literal(text, language="en"))])
    resource = Resource(
        ["ex:Outer"],
        [("ex:says", Literal(text)), ("ex:inner", inner), ("ex:at", Iri(f"http://e.org/{path}"))],
        Iri("http://example.org/it"),
    )
    graph = Graph({"ex": "http://example.org/"}, [resource])
    turtle = RdfGraph().parse(data=graph.to_turtle(), format="turtle")
    linked = RdfGraph().parse(data=graph.to_json_ld(), format="json-ld")
    assert isomorphic(turtle, linked)
    assert [str(value) for value in turtle.objects() if str(value) == text][:1] == [text]


@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_xml_holds_every_text_that_it_can(text: str) -> None:
    from lxml import etree

    element = XmlElement("a", None, b=text)
    element.add("c", text)
    root = etree.fromstring(element.write().encode())
    allowed = "".join(
        letter if letter in "\t\n\r" or " " <= letter < "\ufffe" or letter > "\uffff" else "\ufffd"
        for letter in text
    )
    assert (root[0].text or "") == allowed
