"""DDI Codebook 2.5 as XML: the study, the files, and every variable with its categories."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from incrowd.release.metadata.answers import describe_guarantee, list_limits
from incrowd.release.metadata.description import (
    ColumnType,
    DescribedColumn,
    DescribedFile,
    ReleaseDescription,
)

_NAMESPACE = "ddi:codebook:2_5"
_FORMATS: dict[ColumnType, str] = {
    "text": "character", "any": "character", "integer": "numeric", "number": "numeric",
    "date": "character", "boolean": "character",
}  # fmt: skip
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class XmlElement:
    """An element with text or children, in the order in which they are added."""

    def __init__(self, name: str, text: str | None = None, /, **attributes: str) -> None:
        self.name = name
        self.text = text
        self.attributes = attributes
        self.children: list[XmlElement] = []

    def add(self, name: str, text: str | None = None, /, **attributes: str) -> XmlElement:
        """Add a child and return it."""
        child = XmlElement(name, text, **attributes)
        self.children.append(child)
        return child

    def write(self, depth: int = 0) -> str:
        """Return the element as XML."""
        indent = "  " * depth
        listed = "".join(
            f" {name.replace('__', ':')}={quoteattr(_drop_controls(value))}"
            for name, value in self.attributes.items()
        )
        if self.text is not None:
            text = escape(_drop_controls(self.text), {"\r": "&#13;"})
            return f"{indent}<{self.name}{listed}>{text}</{self.name}>\n"
        if not self.children:
            return f"{indent}<{self.name}{listed}/>\n"
        inner = "".join(child.write(depth + 1) for child in self.children)
        return f"{indent}<{self.name}{listed}>\n{inner}{indent}</{self.name}>\n"


def _drop_controls(text: str) -> str:
    """Return text with what XML cannot hold replaced."""
    return _CONTROL.sub("\ufffd", text)


def write_codebook(release: ReleaseDescription) -> bytes:
    """Return the codebook of a release."""
    root = XmlElement("codeBook", xmlns=_NAMESPACE, version="2.5", xml__lang="en")
    _describe_study(root.add("stdyDscr"), release)
    for number, file in enumerate(release.files, 1):
        _describe_file(root.add("fileDscr", ID=f"F{number}", URI=release.locate(file.name)), file)
    variables = root.add("dataDscr")
    number = 0
    for at, file in enumerate(release.files, 1):
        for column in file.columns:
            number += 1
            _describe_variable(variables, f"V{number}", f"F{at}", column)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{root.write()}'.encode()


def _describe_study(study: XmlElement, release: ReleaseDescription) -> None:
    """Describe what was published, how, and from what; in the order of the schema."""
    about, certificate = release.about, release.certificate
    citation = study.add("citation")
    titles = citation.add("titlStmt")
    titles.add("titl", release.title)
    titles.add("IDNo", certificate.seal, agency="Incrowd")
    if about.publisher is not None:
        citation.add("prodStmt").add("producer", about.publisher)
    distribution = citation.add("distStmt")
    distribution.add("distrbtr", about.read_text("publisher"))
    if about.contact is not None:
        kind = "URI" if about.contact.startswith("http") else "email"
        distribution.add("contact", about.read_text("publisher"), **{kind: about.contact})
    distribution.add("distDate", certificate.date, date=certificate.date)
    _describe_scope(study.add("stdyInfo"), release)
    method = study.add("method")
    collection = method.add("dataColl")
    collection.add("sources").add("dataSrc", about.read_text("source"))
    processing = [
        f"Anonymization procedure: {describe_guarantee(release)}.",
        *release.statement,
    ]
    for sentence in processing:
        method.add("dataProcessing", sentence, type="anonymization")
    access = study.add("dataAccs")
    conditions = access.add("useStmt")
    conditions.add("confDec", f"{describe_guarantee(release)}.", required="no")
    if about.license is not None:
        conditions.add("conditions", about.license)
    conditions.add("disclaimer", " ".join(list_limits(release)))


def _describe_scope(info: XmlElement, release: ReleaseDescription) -> None:
    about = release.about
    if about.keywords or about.theme:
        subject = info.add("subject")
        for keyword in about.keywords:
            subject.add("keyword", keyword)
        if about.theme is not None:
            subject.add("topcClas", about.theme, vocab="EU data themes")
    info.add("abstract", about.read_text("description"))
    summary = info.add("sumDscr")
    summary.add("geogCover", about.read_text("region"))
    unit = "Individual" if release.certificate.guarantee.unit == "one person" else "Row"
    summary.add("anlyUnit", unit)
    summary.add("universe", about.read_text("source"))
    kind = {"synthetic": "synthetic microdata", "tables": "aggregate data"}
    summary.add("dataKind", kind.get(release.certificate.method, "anonymized microdata"))


def _describe_file(element: XmlElement, file: DescribedFile) -> None:
    text = element.add("fileTxt")
    text.add("fileName", file.name)
    dimensions = text.add("dimensns")
    dimensions.add("caseQnty", str(file.rows))
    dimensions.add("varQnty", str(len(file.columns)))
    text.add("fileType", file.media_type)
    element.add("notes", file.sha256, type="SHA-256")


def _describe_variable(
    variables: XmlElement, number: str, file: str, column: DescribedColumn
) -> None:
    is_number = column.type in ("integer", "number") and not column.labels
    variable = variables.add(
        "var", ID=number, name=column.name, files=file,
        intrvl="contin" if is_number else "discrete",
    )  # fmt: skip
    variable.add("labl", column.content)
    variable.add("security", column.treatment)
    for label in column.labels:
        category = variable.add("catgry")
        category.add("catValu", label)
        category.add("labl", label)
    variable.add("varFormat", type=_FORMATS[column.type], schema="other")
    if column.hierarchy:
        variable.add("notes", f"Hierarchy: {column.hierarchy}", type="hierarchy")
    if column.rule:
        variable.add("notes", f"Hierarchy: {column.rule}", type="hierarchy")
