"""Uses assay's interface for OpenAI's clients as their users would.

usage: clients.py openai|langchain|llamaindex

The environment has the addresses of three servers with the same documents: ASSAY_OPENAI_URL, one
whose limit of requests is reached in ASSAY_OPENAI_LIMITED, and one whose model does not answer in
ASSAY_OPENAI_SLOW. A request to ASSAY_OPENAI_STOP ends the runs of the last one with an error. Each check
that passes is a line "ok NAME".
"""

import os
import re
import sys
import traceback
import urllib.request

URL = os.environ["ASSAY_OPENAI_URL"]
LIMITED = os.environ["ASSAY_OPENAI_LIMITED"]
SLOW = os.environ["ASSAY_OPENAI_SLOW"]
STOP = os.environ["ASSAY_OPENAI_STOP"]
KEY = "none"
MODEL = "assay"
QUESTION = "How many days of unused leave may be carried over to the next year?"
UNKNOWN = "What is the capital of Peru?"
TOKEN = "eyJhbGciOiJub25lIn0.e30.x"  # no credential of these servers
MESSAGES = [{"role": "user", "content": QUESTION}]


def check(fn):
    """Runs a check."""
    name = fn.__name__.replace("_", " ")
    try:
        fn()
    except Exception:
        traceback.print_exc()
        sys.exit(f"FAIL {name}")
    print(f"ok {name}", flush=True)


def answered(text):
    assert re.search("five days of unused leave", text, re.I) and "[1]" in text, text


def not_found(text):
    assert "Not found in these documents" in text and "Searched:" in text, text


def cited(citation, text):
    """Checks a citation of a part of text."""
    c = citation if isinstance(citation, dict) else citation.model_dump()
    assert re.match(r"http://127\.0\.0\.1:\d+/api/v1/documents/", c["url"]), c
    assert c["title"] == "Leave", c
    assert text[c["start_index"] : c["end_index"]].startswith("Up to five days"), c


def raises(kind, fn):
    """Returns the exception of a kind that fn raises."""
    try:
        fn()
    except kind as e:
        return e
    raise AssertionError(f"no {kind}")


def use_openai():
    import openai

    client = openai.OpenAI(base_url=URL, api_key=KEY)

    @check
    def models():
        ids = [m.id for m in client.models.list()]
        assert MODEL in ids and "assay/default:thorough" in ids, ids
        assert client.models.retrieve("assay/default").id == "assay/default"
        assert raises(openai.NotFoundError, lambda: client.models.retrieve("gpt-4")).code == "model_not_found"

    @check
    def chat():
        c = client.chat.completions.create(model=MODEL, messages=MESSAGES, temperature=0.2)
        m = c.choices[0].message
        answered(m.content)
        cited(m.annotations[0].url_citation, m.content)
        assert c.metadata["assay_status"] == "answered" and c.metadata["assay_ignored"] == "temperature", c.metadata

    @check
    def chat_stream():
        text, reasoning, annotations, usage = "", "", [], None
        for chunk in client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                progress = getattr(choice.delta, "reasoning_content", None)
                assert not (progress and text), "progress comes before content"
                reasoning += progress or ""
                annotations += getattr(choice.delta, "annotations", None) or []
        answered(text)
        cited(annotations[0]["url_citation"], text)
        assert reasoning and usage is not None

    @check
    def not_found_chat():
        c = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": UNKNOWN}])
        not_found(c.choices[0].message.content)
        assert c.metadata["assay_status"] == "not_found"

    @check
    def responses():
        r = client.responses.create(model=MODEL, input=QUESTION, include=["file_search_call.results"])
        answered(r.output_text)
        search, message = r.output
        assert " ".join(search.results[0].text.split()).startswith("Up to five days"), search
        kinds = {a.type: a for a in message.content[0].annotations}
        assert kinds["file_citation"].file_id == search.results[0].file_id
        cited(message.content[0].annotations[0], r.output_text)
        follow = client.responses.create(model=MODEL, input="And when do they expire?", previous_response_id=r.id)
        assert "31 March" in follow.output_text, follow.output_text
        assert client.responses.retrieve(r.id).output_text == r.output_text
        client.responses.delete(r.id)
        raises(openai.NotFoundError, lambda: client.responses.retrieve(r.id))

    @check
    def responses_stream():
        with client.responses.stream(model=MODEL, input=QUESTION) as stream:
            numbers = [event.sequence_number for event in stream if hasattr(event, "sequence_number")]
            r = stream.get_final_response()
        answered(r.output_text)
        assert numbers == sorted(numbers) and r.status == "completed"

    @check
    def embeddings():
        packed = client.embeddings.create(model="assay-embedding", input=["a text", "another"])
        plain = client.embeddings.create(model="assay-embedding", input="a text", encoding_format="float")
        assert len(packed.data) == 2
        assert all(abs(a - b) < 1e-6 for a, b in zip(packed.data[0].embedding, plain.data[0].embedding, strict=True))

    @check
    def errors():
        def ask(base_url, api_key=KEY):
            return lambda: openai.OpenAI(base_url=base_url, api_key=api_key).chat.completions.create(model=MODEL, messages=MESSAGES)

        assert raises(openai.AuthenticationError, ask(URL, TOKEN)).code == "invalid_api_key"
        limited = raises(openai.RateLimitError, ask(LIMITED))
        assert limited.code == "insufficient_quota" and int(limited.response.headers["retry-after"]) > 0
        wrong = raises(openai.BadRequestError, lambda: client.chat.completions.create(model=MODEL, messages=MESSAGES, n=2))
        assert wrong.param == "n"

    @check
    def error_in_a_stream():
        far = openai.OpenAI(base_url=SLOW, api_key=KEY, max_retries=0)
        chat = far.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True)
        response = far.responses.create(model=MODEL, input=QUESTION, stream=True)
        urllib.request.urlopen(STOP, timeout=60).close()

        def read_chat():
            for chunk in chat:
                assert not chunk.choices[0].delta.content, "a draft is sent"

        def read_response():
            for event in response:
                assert event.type != "response.output_text.delta", event

        raises(openai.APIError, read_chat)
        raises(openai.APIError, read_response)


def use_langchain():
    import openai
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    def llm(base_url=URL, api_key=KEY, **more):
        return ChatOpenAI(model=MODEL, base_url=base_url, api_key=api_key, max_retries=0, **more)

    @check
    def chat():
        answered(llm().invoke(QUESTION).content)

    @check
    def chat_stream():
        answered("".join(chunk.content for chunk in llm().stream(QUESTION)))

    @check
    def responses():
        r = llm(use_responses_api=True).invoke(QUESTION)
        text = [block for block in r.content if block["type"] == "text"][0]
        answered(text["text"])
        cited(text["annotations"][0], text["text"])
        assert "Up to five days" in str(r.content) + str(r.additional_kwargs)

    @check
    def responses_stream():
        whole = None
        for chunk in llm(use_responses_api=True).stream(QUESTION):
            whole = chunk if whole is None else whole + chunk
        answered(whole.text)

    @check
    def not_found_chat():
        not_found(llm().invoke(UNKNOWN).content)

    @check
    def embeddings():
        e = OpenAIEmbeddings(model="assay-embedding", base_url=URL, api_key=KEY, check_embedding_ctx_length=False)
        assert len(e.embed_documents(["a text", "another"])) == 2
        tokens = OpenAIEmbeddings(model="assay-embedding", base_url=URL, api_key=KEY)

        def embed_tokens():
            tokens.client.create(model="assay-embedding", input=[[1, 2, 3]])

        assert "check_embedding_ctx_length=False" in str(raises(openai.BadRequestError, embed_tokens))

    @check
    def errors():
        raises(openai.AuthenticationError, lambda: llm(api_key=TOKEN).invoke(QUESTION))
        raises(openai.RateLimitError, lambda: llm(LIMITED).invoke(QUESTION))


def use_llamaindex():
    import openai
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike

    def llm(base_url=URL, api_key=KEY):
        return OpenAILike(model=MODEL, api_base=base_url, api_key=api_key, is_chat_model=True, context_window=32000, max_retries=0)

    messages = [ChatMessage(role="user", content=QUESTION)]

    @check
    def chat():
        answered(llm().chat(messages).message.content)

    @check
    def chat_stream():
        answered("".join(chunk.delta for chunk in llm().stream_chat(messages)))

    @check
    def complete():
        not_found(llm().complete(UNKNOWN).text)

    @check
    def errors():
        raises(openai.AuthenticationError, lambda: llm(api_key=TOKEN).chat(messages))
        raises(openai.RateLimitError, lambda: llm(LIMITED).chat(messages))


if __name__ == "__main__":
    {"openai": use_openai, "langchain": use_langchain, "llamaindex": use_llamaindex}[sys.argv[1]]()
