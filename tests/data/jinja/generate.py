#!/usr/bin/env python3
"""Writes truth.jsonl: what Jinja itself makes of expressions.txt (one a line) and templates.txt (separated by
lines of =====), set up as transformers sets it up for chat templates, with context.json. Needs python3-jinja2;
the tests need its output only. Every template is rendered with line ends \\n and, where it has several lines,
\\r\\n, and with two newlines more at its end."""
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_say"), [], [], body).set_lineno(line)

    def _say(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime(2024, 7, 6).strftime(form)
    return env


def truth(env, template, context):
    try:
        return {"template": template, "text": env.from_string(template).render(**json.loads(context))}
    except Exception:  # whatever Python raises is an error of the template
        return {"template": template, "error": True}


def main():
    folder = pathlib.Path(__file__).parent
    context = (folder / "context.json").read_text()
    templates = ["{{ %s }}" % line for line in (folder / "expressions.txt").read_text().splitlines()]
    for template in (folder / "templates.txt").read_text().removesuffix("\n").split("\n=====\n"):
        templates += [template, template + "\n\n"]
        if "\n" in template:
            templates.append(template.replace("\n", "\r\n"))
    env = environment()
    with open(folder / "truth.jsonl", "w") as out:
        for template in templates:
            out.write(json.dumps(truth(env, template, context), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
