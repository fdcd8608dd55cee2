"""The description of the service as one page of HTML, made from its OpenAPI schema; it loads nothing else."""

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
STYLE = """:root { color-scheme: light dark;
  --line: #ccc; --code: #f2f2f2; --text: #1a1a1a; --page: #fff; --link: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444; --code: #2a2a2a; --text: #e6e6e6; --page: #171717; --link: #8ab4f8; }
}
body { font: 16px/1.5 sans-serif; max-width: 50em; margin: 1.5em auto; padding: 0 1em; color: var(--text);
  background: var(--page); overflow-wrap: anywhere; }
a { color: var(--link); }
code, pre { background: var(--code); border-radius: 3px; padding: .1em .3em; }
pre { padding: .7em; overflow-x: auto; overflow-wrap: normal; }
h2 { border-top: 1px solid var(--line); padding-top: 1em; font-size: 1.15em; }
nav ul { list-style: none; padding: 0; }
nav li { margin: .3em 0; }
ul { padding-left: 1.2em; }
summary { cursor: pointer; font-weight: bold; margin: .5em 0; }"""
TWINS = ((re.compile(r"^/models/\{name\}(?=/)"), ""), (re.compile(r"/versions/\{version\}"), ""))
"""Addresses that do the same as another, and what turns them into it."""
Schema = Mapping[str, Any]


def render_page(schema: Schema) -> str:
    """All endpoints: what they take and what they answer."""
    info, forms = schema["info"], schema.get("components", {}).get("schemas", {})
    endpoints = list(_endpoints(schema["paths"]))
    title = f"{info['title']} {info['version']}"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{escape(title)}</title><style>{STYLE}</style>"
    about = f"<h1>{escape(title)}</h1><p>{escape(info['description'])}</p>"
    more = '<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>'
    listed = "".join(
        f'<li><a href="#{_anchor(verb, path)}"><code>{verb.upper()} {escape(path)}</code></a> '
        f"{escape(facts['summary'])}</li>"
        for verb, path, _, facts in endpoints
    )
    body = "".join(_endpoint(*each, forms) for each in endpoints)
    content = f'{about}{more}<nav aria-label="Endpoints"><ul>{listed}</ul></nav><main>{body}</main>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{content}</body></html>'


def _endpoints(paths: Schema) -> Iterator[tuple[str, str, list[str], Schema]]:
    """The verb and path of each endpoint, other paths that do the same, and what is known of it."""
    twins: dict[str, list[str]] = {}
    for path in paths:
        for pattern, first in TWINS:
            if (other := pattern.sub(first, path)) != path and other in paths:
                twins.setdefault(other, []).append(path)
    hidden = {path for each in twins.values() for path in each}
    for path, verbs in paths.items():
        if path not in hidden:
            for verb, facts in sorted(verbs.items()):
                yield verb, path, twins.get(path, []), facts


def _anchor(verb: str, path: str) -> str:
    return re.sub(r"\W+", "-", f"{verb}{path}").strip("-")


def _endpoint(verb: str, path: str, twins: list[str], facts: Schema, forms: Schema) -> str:
    title = f"<code>{verb.upper()} {escape(path)}</code> {escape(facts['summary'])}"
    parts = [f'<h2 id="{_anchor(verb, path)}">{title}</h2>']
    if twins:
        parts.append(f"<p>Also {', '.join(f'<code>{escape(each)}</code>' for each in twins)}.</p>")
    lines = [_field(each["name"], each["schema"], forms, each["in"]) for each in facts.get("parameters", ())]
    parts += [f"<h3>Parameters</h3><ul>{''.join(lines)}</ul>"] if lines else []
    kinds: dict[str, list[str]] = {}
    for kind, content in facts.get("requestBody", {}).get("content", {}).items():
        kinds.setdefault(_form(content["schema"], forms), []).append(kind)
    for form, names in kinds.items():
        shown = ", ".join(f"<code>{escape(name)}</code>" for name in names)
        parts.append(f"<details open><summary>Body as {shown}</summary>{form}</details>")
    for status, response in facts["responses"].items():
        if content := response.get("content", {}).get("application/json"):
            form = _form(content["schema"], forms)
            parts.append(f"<details><summary>Response {escape(status)}</summary>{form}</details>")
    return "".join(parts)


def _resolve(schema: Schema, forms: Schema) -> Schema:
    """What a reference leads to."""
    found: Schema = forms.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    return found


def _form(schema: Schema, forms: Schema) -> str:
    """A text, the fields of an object, and an example."""
    schema = _resolve(schema, forms)
    fields: Schema = schema.get("properties", {})
    examples = {name: facts["examples"][0] for name, facts in fields.items() if "examples" in facts}
    shown = f"<pre>{escape(json.dumps(examples))}</pre>" if examples else ""
    return f"<p>{escape(str(schema.get('description', '')))}</p>{_fields(fields, forms)}{shown}"


def _fields(fields: Schema, forms: Schema) -> str:
    lines = [_field(name, facts, forms) for name, facts in fields.items()]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _field(name: str, facts: Schema, forms: Schema, place: str = "") -> str:
    kinds, inside = [], ""
    for each in facts.get("anyOf", [facts]):
        kind = _resolve(each, forms)
        items = _resolve(kind.get("items", {}), forms)
        listed = f"list of {items['type']}s" if "type" in items else "list"
        kinds.append(listed if kind.get("type") == "array" else str(kind.get("type", "any")))
        inside = inside or _fields(items.get("properties", kind.get("properties", {})), forms)
    text = " or ".join(dict.fromkeys(kinds)).replace(" or null", ", or null")
    text += f", in the {place}" if place else ""
    text = f"{text}. {facts.get('description', '')}".strip()
    return f"<li><code>{escape(name)}</code>: {escape(text)}{inside}</li>"
