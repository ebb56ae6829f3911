"""The sub-commands of ``aclnn-oracle``, one file each: ``add_parser(subparsers)`` registers it."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
