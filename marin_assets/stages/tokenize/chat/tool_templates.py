"""Chat templates with tools: their definitions are read, and calls are learnt as a part of the answer."""

from __future__ import annotations

_NEWLINE = "{{ '\\n' }}"
_CALL = (
    '<tool_call>{{ {"name": call["function"]["name"], "arguments": call["function"]["arguments"]} | tojson }}'
    "</tool_call>"
)

PLAIN_TOOLS = (
    "{{ bos_token }}{% if tools %}Tools: {{ tools | map(attribute='function') | list | tojson }}"
    + _NEWLINE
    + "{% endif %}"
    "{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "Assistant:{% generation %}{% if message['content'] %} {{ message['content'] }}{% endif %}"
    "{% for call in message['tool_calls'] or [] %} " + _CALL + "{% endfor %}{{ eos_token }}{% endgeneration %}"
    "{% else %}{{ message['role'] | capitalize }}: {{ message['content'] }}{% endif %}" + _NEWLINE + "{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
"""Words alone, for every tokenizer; a chat without tools is that of "plain"."""

_START, _END = "<|im_start|>", "<|im_end|>"
_TOOLS = (
    "# Tools\\n\\nYou may call one or more functions to assist with the user query.\\n\\n"
    "You are provided with function signatures within <tools></tools> XML tags:\\n<tools>"
)
_HOW = (
    "\\n</tools>\\n\\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\\n<tool_call>\\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\\n</tool_call>'
)
CHATML_TOOLS = (
    "{{ bos_token }}{% if tools %}" + _START + "system" + _NEWLINE + "{% if messages[0]['role'] == 'system' %}"
    "{{ messages[0]['content'] + '\\n\\n' }}{% endif %}{{ '" + _TOOLS + "' }}"
    "{% for tool in tools %}" + _NEWLINE + "{{ tool | tojson }}{% endfor %}{{ '" + _HOW + "' }}" + _END + _NEWLINE +
    "{% endif %}{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}" + _START + "assistant" + _NEWLINE +
    "{% generation %}{{ message['content'] }}{% for call in message['tool_calls'] or [] %}"
    "{% if message['content'] or not loop.first %}" + _NEWLINE + "{% endif %}"
    + _CALL.replace("<tool_call>{{", "<tool_call>{{ '\\n' }}{{").replace("}}</tool_call>", "}}{{ '\\n' }}</tool_call>")
    + "{% endfor %}" + _END + "{% endgeneration %}" + _NEWLINE +
    "{% elif message['role'] == 'tool' %}"
    "{% if loop.first or loop.previtem['role'] != 'tool' %}" + _START + "user{% endif %}" + _NEWLINE +
    "<tool_response>" + _NEWLINE + "{{ message['content'] }}" + _NEWLINE + "</tool_response>"
    "{% if loop.last or loop.nextitem['role'] != 'tool' %}" + _END + _NEWLINE + "{% endif %}"
    "{% elif not (loop.first and message['role'] == 'system' and tools) %}"
    + _START + "{{ message['role'] }}" + _NEWLINE + "{{ message['content'] }}" + _END + _NEWLINE +
    "{% endif %}{% endfor %}{% if add_generation_prompt %}" + _START + "assistant" + _NEWLINE + "{% endif %}"
)  # fmt: skip
"""The form of Hermes and of Qwen 2.5, for tokenizers with the tokens of ChatML; without tools it is "chatml"."""
