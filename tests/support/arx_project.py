"""Project files of ARX in the form that ARX writes them."""

from __future__ import annotations

import zipfile
from pathlib import Path

CRITERIA = (
    "3-anonymity", "distinct-2-diversity for attribute 'ill'",
    "0.6-closeness with equal distance for attribute 'ill'",
    "recursive-(4.0,3)-diversity for attribute 'ill'", "(0.1,0.5)-presence",
)  # fmt: skip
CONFIG = """<config>
	<suppressTuplesInNonAnonymousOutput>false</suppressTuplesInNonAnonymousOutput>
	<suppressionString>*</suppressionString>
	<relativeMaxOutliers>{limit}</relativeMaxOutliers>
	<metric>{metric}</metric>
	<attributeWeights>
		<attributeWeight><attribute>age</attribute><weight>0.75</weight></attributeWeight>
		<attributeWeight><attribute>sex</attribute><weight>0.5</weight></attributeWeight>
	</attributeWeights>
	<criteria>
{criteria}
	</criteria>
</config>
"""
DEFINITION = """<definition>
	<assigment>
		<name>name</name><type>IDENTIFYING_ATTRIBUTE</type><datatype>String</datatype>
	</assigment>
	<assigment>
		<name>age</name><type>QUASI_IDENTIFYING_ATTRIBUTE</type><datatype>Integer</datatype>
		<ref>hierarchies/age.csv</ref><min>0</min><max>1</max>
	</assigment>
	<assigment>
		<name>sex</name><type>QUASI_IDENTIFYING_ATTRIBUTE</type><datatype>String</datatype>
		<ref>hierarchies/sex.csv</ref><min>All</min><max>All</max>
	</assigment>
	<assigment>
		<name>ill</name><type>SENSITIVE_ATTRIBUTE</type><datatype>String</datatype>
	</assigment>
	<assigment>
		<name>day</name><type>INSENSITIVE_ATTRIBUTE</type><datatype>Date</datatype>
		<format>dd.MM.yyyy</format>
	</assigment>
</definition>
"""
ROWS = [
    f"Person {at};{20 + at % 40};{'fm'[at % 2]};{['flu', 'cold', 'none'][at // 2 % 3]};01.02.2020"
    for at in range(240)
]


def write_project(
    path: Path,
    criteria: tuple[str, ...] = CRITERIA,
    *,
    metric: str = "Loss",
    limit: str = "0.04",
    without: str = "",
    definition: str = DEFINITION,
) -> Path:
    """Write a project as ARX does: XML and CSV in a ZIP file, beside serialized objects."""
    listed = "\n".join(f"\t\t<criterion>{text}</criterion>" for text in criteria)
    ages = "\n".join(f"{a};{a // 10 * 10}-{a // 10 * 10 + 9};*" for a in range(20, 60))
    files = {
        "metadata.xml": "<metadata><version>3.9.1</version></metadata>",
        "project.dat": "\x00serialized",
        "data/input.csv": "\n".join(["name;age;sex;ill;day", *ROWS]) + "\n",
        "input/config.xml": CONFIG.format(criteria=listed, metric=metric, limit=limit),
        "input/definition.xml": definition,
        "input/hierarchies/age.csv": ages + "\n",
        "input/hierarchies/sex.csv": "f;*\nm;*\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            if name != without:
                archive.writestr(name, text)
    return path
