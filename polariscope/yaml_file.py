"""Reading YAML as people write it: 1e-3 is a number, and a key given twice is a mistake."""

import re
from pathlib import Path
from typing import Any

import yaml

from polariscope.errors import InputError
from polariscope.files import read_text


class _Loader(yaml.SafeLoader):
    """Safe YAML, with the numbers of YAML 1.2 and without silent overwriting."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]  # pyright: ignore[reportUnknownMemberType]
        for key in keys:
            if keys.count(key) > 1:
                line = node.start_mark.line + 1
                raise InputError(
                    f"key {key}", got=f"it twice, in the mapping of line {line}", expected="it once", fix="drop one"
                )
        return super().construct_mapping(node, deep)


# YAML 1.1 takes 1e-3 for a word, since it has no point.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read_yaml(path: Path) -> Any:
    """Read a YAML file (JSON is YAML too). Raises InputError if it is missing, not UTF-8 text or not YAML."""
    try:
        return yaml.load(read_text(path, "YAML"), Loader=_Loader)
    except InputError:
        raise
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        place = f", line {mark.line + 1} column {mark.column + 1}" if mark else ""
        said = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        raise InputError(
            "malformed YAML", got=f"{path}{place}: {said}", expected="valid YAML", fix="mend that place"
        ) from problem
    except (ValueError, TypeError, RecursionError) as problem:
        raise InputError(
            "input file", got=f"{path} ({problem})"[:300], expected="YAML of ordinary size", fix="check the file"
        ) from problem
