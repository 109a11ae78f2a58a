# Renders chat templates with the reference implementation: one JSON request per line in, one JSON answer per line out.
import datetime
import json
import sys

import transformers.utils.chat_template_utils as reference


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 2, 3, 14, 5, 6)


reference.datetime = FixedClock

for line in sys.stdin:
    request = json.loads(line)
    try:
        rendered, _ = reference.render_jinja_template(
            conversations=[request["messages"]],
            tools=request.get("tools"),
            chat_template=request["template"],
            add_generation_prompt=request["add_generation_prompt"],
            **request["special_tokens"],
            **request["settings"],
        )
        answer = {"text": rendered[0]}
    except Exception as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer))
