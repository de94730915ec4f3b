"""How an engine gets prompts of an exact length: by its /tokenize, or as token ids.

Asked before a run starts, by the ordinary client: nothing here is measured.
"""

from dataclasses import dataclass
from typing import Any

import httpx2

from measurements import synthetic
from measurements.plan import Plan
from measurements.prompts import Prompt, PromptError

ANSWER_LIMIT_S = 30.0
_NO_SUCH_ROUTE = frozenset({404, 405, 501})


class _NoTokenizeError(Exception):
    """The engine has no /tokenize."""


@dataclass(frozen=True)
class _Engine:
    client: httpx2.AsyncClient
    plan: Plan

    async def count(self, prompt: Prompt) -> int:
        """Return the length of a prompt as the engine will see it, chat template included."""
        target = self.plan.target
        chat = target.api == "chat"
        asked = {"messages": prompt.messages()} if chat else {"prompt": prompt.text()}
        root = target.base_url.removesuffix("/v1")
        answer = await self._post(f"{root}/tokenize", {"model": target.served_model, **asked})
        if answer.status_code in _NO_SUCH_ROUTE:
            raise _NoTokenizeError
        return _whole(answer, "count")

    async def completion_length(self, prompt: Prompt) -> int:
        """Return the length of a prompt by the usage of a completion of one token."""
        asked = {"prompt": prompt.text(), "max_tokens": 1}
        target = self.plan.target
        answer = await self._post(
            f"{target.base_url}/completions", {"model": target.served_model, **asked}
        )
        return _whole(answer, "usage", "prompt_tokens")

    async def _post(self, url: str, body: dict[str, Any]) -> httpx2.Response:
        try:
            return await self.client.post(url, json=body)
        except httpx2.HTTPError as error:
            raise PromptError(f"{url} did not answer: {error or type(error).__name__}.") from error


async def find_recipe(plan: Plan, api_key: str | None) -> synthetic.Recipe:
    """Return how prompts of `plan.prompts.tokens` are made for the engine; PromptError if not."""
    tokens = plan.prompts.tokens or 0
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    async with httpx2.AsyncClient(
        headers=headers, timeout=ANSWER_LIMIT_S, trust_env=False
    ) as client:
        engine = _Engine(client, plan)
        try:
            return await synthetic.of_words(tokens, engine.count)
        except _NoTokenizeError:
            return await _recipe_of_ids(engine, tokens)


async def _recipe_of_ids(engine: _Engine, tokens: int) -> synthetic.Recipe:
    if engine.plan.target.api == "chat":
        raise PromptError(
            "This engine cannot be asked for prompts of an exact length: it has no /tokenize, and "
            "chat takes no token ids; choose a prompt set instead."
        )
    recipe = synthetic.of_ids(tokens)
    counted = await engine.completion_length(next(synthetic.endless(recipe, engine.plan.prompts)))
    if counted != tokens:
        raise PromptError(
            f"The engine counts {counted} tokens where {tokens} token ids were sent, so exact "
            "lengths cannot be had from it; choose a prompt set instead."
        )
    return recipe


def _whole(answer: httpx2.Response, *path: str) -> int:
    """Return a whole number within an answer; PromptError with the engine's words otherwise."""
    if answer.is_success:
        try:
            value = answer.json()
            for name in path:
                value = value[name]
            return int(value)
        except (ValueError, TypeError, LookupError):
            pass
    words = answer.text[:200].strip()
    raise PromptError(
        f"{answer.request.url} gave no length of a prompt: HTTP {answer.status_code} {words}."
    )
