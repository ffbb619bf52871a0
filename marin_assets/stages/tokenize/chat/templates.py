"""Chat templates: Jinja, as in Hugging Face's tokenizers. What is in {% generation %} is learnt, the rest is read.

A step has the text of its template in its config and in its version, as a name may come to mean another text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from marin_assets.documents.chats.messages import ASSISTANT, Messages, is_learnt
from marin_assets.documents.chats.not_a_chat import NotAChat
from marin_assets.documents.chats.tools import Tools, texts_of
from marin_assets.stages.tokenize.chat.tool_templates import CHATML_TOOLS, PLAIN_TOOLS
from marin_assets.step.values import versioned
from marin_resources.types.errors import MarinError
from marin_resources.types.near_names import expected_one_of

_NEWLINE = "{{ '\\n' }}"  # a newline after a block would be trimmed
_EACH = "{{ bos_token }}{% for message in messages %}"


def _with_headers(before: str, after: str, end: str, between: str) -> str:
    """Every message has a header with its role, and ends with the token `end`."""
    header = before + "{{ message['role'] }}" + after
    return (
        _EACH + header + "{% if message['role'] == 'assistant' %}"
        "{% generation %}{{ message['content'] }}" + end + "{% endgeneration %}"
        "{% else %}{{ message['content'] }}" + end + "{% endif %}" + between + "{% endfor %}"
        "{% if add_generation_prompt %}" + before + "assistant" + after + "{% endif %}"
    )


TEMPLATES = {
    # Words alone, so that it suits every tokenizer. The space is learnt: "Assistant:" and " 7" are the tokens that a
    # prompt without a space at its end gets too.
    "plain": (
        _EACH + "{% if message['role'] == 'assistant' %}"
        "Assistant:{% generation %} {{ message['content'] }}{{ eos_token }}{% endgeneration %}"
        "{% else %}{{ message['role'] | capitalize }}: {{ message['content'] }}{% endif %}" + _NEWLINE + "{% endfor %}"
        "{% if add_generation_prompt %}Assistant:{% endif %}"
    ),
    "tulu": (  # of Tulu 3 and OLMo 2
        _EACH + "<|{{ message['role'] }}|>" + _NEWLINE + "{% if message['role'] == 'assistant' %}"
        "{% generation %}{{ message['content'] }}{{ eos_token }}{% endgeneration %}"
        "{% else %}{{ message['content'] }}{% endif %}" + _NEWLINE + "{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>" + _NEWLINE + "{% endif %}"
    ),
    "chatml": _with_headers("<|im_start|>", _NEWLINE, "<|im_end|>", _NEWLINE),
    "llama3": _with_headers("<|start_header_id|>", "<|end_header_id|>" + 2 * _NEWLINE, "<|eot_id|>", ""),
    # The texts alone: a prompt that is a text, as those of environments, begins as a chat does. The reply of a tool
    # in an answer is a message of the user.
    "bare": (
        _EACH + "{% if message['role'] == 'assistant' %}"
        "{% generation %}{{ message['content'] }}{% if loop.last %}{{ eos_token }}{% endif %}{% endgeneration %}"
        "{% else %}{{ message['content'] }}{% endif %}{% endfor %}"
    ),
    "plain_tools": PLAIN_TOOLS,
    "chatml_tools": CHATML_TOOLS,
}
"""Name -> text. "chatml" and "llama3" suit the tokenizers that have their tokens."""
TOOL_CALLS = "tool_calls"
"""A template whose text has this name gets tools too."""


class TemplateError(MarinError, ValueError):
    """The chat template cannot be used: one sentence."""


def named_template(name: str) -> str:
    """Return the text of a template, versioned. Raises TemplateError for an unknown name."""
    if name not in TEMPLATES:
        raise TemplateError(
            f"The chat template is {name!r}, {expected_one_of(name, TEMPLATES)} The text of a template of your own is "
            "versioned(text) in the config."
        )
    return versioned(TEMPLATES[name])


class ChatTemplate:
    """A compiled template, which renders a chat as parts of text."""

    def __init__(self, text: str, *, bos_token: str, eos_token: str) -> None:
        """Raises TemplateError for a text that is no template, or that has no {% generation %}."""
        from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        self.has_tools = TOOL_CALLS in text
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        # As in Hugging Face, but for the clock: with `strftime_now` the same chats would be other tokens tomorrow.
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            # `message.tool_calls` of a message without them is none; other templates have no keys but ours
            undefined=Undefined if self.has_tools else StrictUndefined,
            extensions=["jinja2.ext.loopcontrols", _generation_extension()],
        )
        environment.globals["raise_exception"] = _refuse
        if self.has_tools:
            environment.filters["tojson"] = _to_json
        try:
            self._template = environment.from_string(text)
        except TemplateSyntaxError as error:
            raise TemplateError(
                f"The chat template is not Jinja ({error.message}, line {error.lineno}): {text!r:.200}. Correct it."
            ) from error

    def parts(self, messages: Messages, tools: Tools | None = None) -> list[tuple[str, bool]]:
        """Return the parts of a whole chat, each with whether it is learnt.

        Raises NotAChat: template_refused; unknown_weight, if a message has a weight and the template has not one
        {% generation %} for each answer.
        """
        mark = _mark_not_in([*texts_of(messages, tools or [])])
        pieces = self._render(messages, tools, mark=mark, add_generation_prompt=False).split(mark)
        learnt = [is_learnt(message) for message in messages if message["role"] == ASSISTANT]
        if all(learnt):
            learnt = [True] * (len(pieces) // 2)
        elif len(learnt) != len(pieces) // 2:
            raise NotAChat("unknown_weight")
        return [(text, bool(i % 2) and learnt[i // 2]) for i, text in enumerate(pieces) if text]

    def prompt(self, messages: Messages, tools: Tools | None = None) -> str:
        """Return the text after which the model answers. Raises NotAChat: template_refused."""
        return self._render(messages, tools, mark="", add_generation_prompt=True)

    def _render(self, messages: Messages, tools: Tools | None, *, mark: str, add_generation_prompt: bool) -> str:
        from jinja2 import TemplateError as JinjaError

        try:
            rendered: str = self._template.render(
                messages=messages,
                add_generation_prompt=add_generation_prompt,
                generation_mark=mark,
                **self._tokens,
                **({"tools": tools or None} if self.has_tools else {}),
            )
        except JinjaError as error:
            raise NotAChat("template_refused") from error
        return rendered


def _generation_extension() -> type[Any]:
    """A Jinja extension: {% generation %}…{% endgeneration %}, with the variable `generation_mark` around it."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            mark = nodes.Output([nodes.Name("generation_mark", "load")], lineno=line)
            return [mark, *body, mark]

    return Generation


def _to_json(value: Any, indent: int | None = None) -> str:
    """The filter of Hugging Face's templates: Jinja's own escapes letters of HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _mark_not_in(texts: Sequence[str]) -> str:
    """A text that none of these has, so that no message can move the border of what is learnt."""
    marks: Iterator[str] = (f"\x00generation {i}\x00" for i in range(len(texts) ** 2 + 1000))
    return next(mark for mark in marks if not any(mark in text for text in texts))


def _refuse(message: str) -> None:
    from jinja2 import TemplateError as JinjaError

    raise JinjaError(message)
