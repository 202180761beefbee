"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

Overrides = Annotated[str, Parameter(allow_leading_hyphen=True, show=False)]
Json = Annotated[bool, Parameter(negative="", help="Print JSON for machines.")]
DryRun = Annotated[bool, Parameter(negative="", help="Say what would be done, and do nothing.")]
Out = Annotated[Path | None, Parameter(help="Folder to write to.")]
Rows = Annotated[int, Parameter(validator=validators.Number(gte=1))]
