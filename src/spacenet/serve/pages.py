"""The description of the service as one page of HTML, made from its OpenAPI schema; it loads nothing else."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
STYLE = """body { font: 16px/1.5 sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; }
code, pre { background: #f2f2f2; color: #111; border-radius: 3px; padding: .1em .3em; }
pre { padding: .7em; overflow-x: auto; }
h2 { border-top: 1px solid #ccc; padding-top: 1em; }"""


def render_page(schema: Mapping[str, Any]) -> str:
    """All endpoints: what they take and what they answer."""
    info, forms = schema["info"], schema.get("components", {}).get("schemas", {})
    parts = [
        _endpoint(verb, path, facts, forms)
        for path, verbs in schema["paths"].items()
        for verb, facts in sorted(verbs.items())
    ]
    title = f"{info['title']} {info['version']}"
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    about = f"<h1>{escape(title)}</h1><p>{escape(info['description'])}</p>"
    more = '<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{about}{more}{"".join(parts)}</body></html>'


def _endpoint(verb: str, path: str, facts: Mapping[str, Any], forms: Mapping[str, Any]) -> str:
    parts = [f"<h2><code>{verb.upper()} {escape(path)}</code> {escape(facts['summary'])}</h2>"]
    for each in facts.get("parameters", ()):
        parts.append(f"<p>Parameter <code>{escape(each['name'])}</code>: {escape(json.dumps(each['schema']))}</p>")
    for kind, content in facts.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<h3>Body as <code>{escape(kind)}</code></h3>{_form(content['schema'], forms)}")
    for status, response in facts["responses"].items():
        content = response.get("content", {}).get("application/json")
        if content:
            parts.append(f"<h3>Response {escape(status)}</h3>{_form(content['schema'], forms)}")
    return "".join(parts)


def _form(schema: Mapping[str, Any], forms: Mapping[str, Any]) -> str:
    schema = forms.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    about = f"<p>{escape(str(schema.get('description', '')))}</p>"
    lines = [_field(name, facts) for name, facts in schema.get("properties", {}).items()]
    examples = {
        name: facts["examples"][0] for name, facts in schema.get("properties", {}).items() if "examples" in facts
    }
    shown = f"<pre>{escape(json.dumps(examples))}</pre>" if examples else ""
    return about + (f"<ul>{''.join(lines)}</ul>" if lines else "") + shown


def _field(name: str, facts: Mapping[str, Any]) -> str:
    kinds = [str(each.get("type", "object")) for each in facts.get("anyOf", [facts])]
    text = f"{' or '.join(dict.fromkeys(kinds))}. {facts.get('description', '')}".strip()
    return f"<li><code>{escape(name)}</code>: {escape(text)}</li>"
