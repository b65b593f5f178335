"""The files of tables of counts: one for each table, the measured numbers, and exports."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from incrowd.release.certificate import ReleasedFile, SchemeColumn, Slice, hash_file
from incrowd.release.formulas import escape_formula
from incrowd.release.product import ColumnRecoding
from incrowd.release.tables_part import (
    MEASURED_FILE,
    ExtraFile,
    TabulationPart,
    TabulationProduct,
)
from incrowd.release.write import write_scheme
from incrowd.spec.release import CommonSpec


def write_tabulation(
    draft: Path, product: TabulationProduct, spec: CommonSpec
) -> tuple[list[Slice], TabulationPart]:
    """Write all files of tables; return a slice for each table, and the certificate's part."""
    several = len(product.tables) > 1
    hierarchies = {column.name: column for cells in product.cells for column in cells.columns}

    @cache
    def write_column(name: str, level: int) -> SchemeColumn:
        hierarchy = hierarchies[name].hierarchy
        recoding = ColumnRecoding(product.declared[name], hierarchy, level)
        return write_scheme(name, recoding, draft, form=recoding.form)

    slices = []
    for number, (cells, table) in enumerate(zip(product.cells, product.tables, strict=True), 1):
        path = draft / f"data{f'-{number}' if several else ''}.{spec.format}"
        data = table.respell_texts(escape_formula) if spec.formulas else table
        data.write(path)
        slices.append(
            Slice(
                parameters={},
                scheme={
                    column.name: write_column(column.name, level)
                    for column, level in zip(cells.columns, cells.levels, strict=True)
                },
                release=ReleasedFile(
                    file=path.name,
                    form="cells",
                    sha256=hash_file(path),
                    rows=cells.count.size,
                    classes=cells.count.size,
                    smallest_class=1,
                    formulas="escaped" if spec.formulas else None,
                ),
            )
        )
    product.numbers.write(draft / MEASURED_FILE)
    part = product.part.model_copy(update={"measured": hash_file(draft / MEASURED_FILE)})
    if product.exports:
        from incrowd.release.tables_export import write_exports

        columns = {name: hierarchies[name] for name in part.columns}
        files = write_exports(
            draft, part, columns, [table.release for table in slices], product.exports
        )
        exported = [ExtraFile(file=file, sha256=hash_file(draft / file)) for file in files]
        part = part.model_copy(update={"exports": exported})
    return slices, part
