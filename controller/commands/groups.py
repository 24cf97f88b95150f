"""Groups of commands whose errors name the valid choices."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from serene.errors import BadUsage, choices


class Choices(TyperGroup):
    """A group of commands. Without a command, or with an unknown one, the error lists them."""

    # Any, because the types belong to typer's private copy of click.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:  # for completion
            raise BadUsage(f"{ctx.command_path}: expected {choices(self.commands)}")
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands and not ctx.resilient_parsing:
            raise BadUsage(f"{ctx.command_path} {args[0]}: expected {choices(self.commands)}")
        return super().resolve_command(ctx, args)


def group(
    help: str, *, cls: type[Choices] = Choices, invoke_without_command: bool = False, add_completion: bool = False
) -> typer.Typer:
    """A group of commands, as `typer.Typer`."""
    return typer.Typer(
        cls=cls,
        help=help,
        add_completion=add_completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        invoke_without_command=invoke_without_command,
    )
