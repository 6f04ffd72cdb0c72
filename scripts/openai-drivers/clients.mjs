// Uses assay's interface for OpenAI's clients as their users would. The argument names the client:
// openai, ai, langchain or llamaindex.
//
// The environment has the addresses of three servers with the same documents:
// ASSAY_OPENAI_URL, one whose limit of requests is reached in ASSAY_OPENAI_LIMITED, and one whose
// model does not answer in ASSAY_OPENAI_SLOW. A request to ASSAY_OPENAI_STOP ends the runs of the last
// one with an error. Each check that passes is a line "ok NAME".
import assert from "node:assert/strict";

const { ASSAY_OPENAI_URL: url, ASSAY_OPENAI_LIMITED: limited, ASSAY_OPENAI_SLOW: slow, ASSAY_OPENAI_STOP: stop } = process.env;
const apiKey = "none";
const model = "assay";
const question = "How many days of unused leave may be carried over to the next year?";
const unknown = "What is the capital of Peru?";
const token = "eyJhbGciOiJub25lIn0.e30.x"; // no credential of these servers

// check runs a check.
async function check(name, fn) {
  try {
    await fn();
  } catch (err) {
    console.error(`FAIL ${name}: ${err.stack}`);
    process.exit(1);
  }
  console.log(`ok ${name}`);
}

// answered checks the text of the answer to the question.
function answered(text) {
  assert.match(text, /five days of unused leave/i);
  assert.match(text, /\[1\]/);
}

// notFound checks the text of the answer to the unknown question.
function notFound(text) {
  assert.match(text, /not found in these documents/i);
  assert.match(text, /Searched:/);
}

// cited checks a citation of a part of text.
function cited(citation, text) {
  assert.match(citation.url, /^http:\/\/127\.0\.0\.1:\d+\/api\/v1\/documents\//);
  assert.equal(citation.title, "Leave");
  const part = [...text].slice(citation.start_index, citation.end_index).join("");
  assert.match(part, /^Up to five days/);
}

const clients = {
  async openai() {
    const { default: OpenAI } = await import("openai");
    const client = new OpenAI({ baseURL: url, apiKey });
    const messages = [{ role: "system", content: "Answer in verse." }, { role: "user", content: question }];

    await check("models", async () => {
      const ids = [];
      for await (const m of client.models.list()) ids.push(m.id);
      assert.ok(ids.includes(model) && ids.includes("assay/default:thorough"), ids.join());
      assert.equal((await client.models.retrieve("assay/default")).id, "assay/default");
      await assert.rejects(client.models.retrieve("gpt-4"), (err) => err.status === 404 && err.code === "model_not_found");
    });
    await check("chat", async () => {
      const c = await client.chat.completions.create({ model, messages, temperature: 0.2 });
      const { content, annotations } = c.choices[0].message;
      answered(content);
      cited(annotations[0].url_citation, content);
      assert.equal(c.choices[0].finish_reason, "stop");
      assert.equal(c.metadata.assay_status, "answered");
      assert.equal(c.metadata.assay_ignored, "temperature, messages[0] (system)");
    });
    await check("chat stream", async () => {
      let content = "", reasoning = "", annotations = [], finish, usage;
      const stream = await client.chat.completions.create({ model, messages, stream: true, stream_options: { include_usage: true } });
      for await (const chunk of stream) {
        const choice = chunk.choices[0];
        usage = chunk.usage ?? usage;
        if (!choice) continue;
        content += choice.delta.content ?? "";
        if (choice.delta.reasoning_content) {
          assert.equal(content, "", "progress comes before content");
          reasoning += choice.delta.reasoning_content;
        }
        annotations = annotations.concat(choice.delta.annotations ?? []);
        finish = choice.finish_reason ?? finish;
      }
      answered(content);
      cited(annotations[0].url_citation, content);
      assert.equal(finish, "stop");
      assert.equal(typeof usage.total_tokens, "number");
      assert.notEqual(reasoning, "");
    });
    await check("chat stream helper", async () => {
      const done = await client.chat.completions.stream({ model, messages }).finalChatCompletion();
      answered(done.choices[0].message.content);
    });
    await check("conversation", async () => {
      const c = await client.chat.completions.create({
        model,
        messages: [{ role: "user", content: question }, { role: "assistant", content: "Up to five days of unused leave. [1]" }, { role: "user", content: "And when do they expire?" }],
      });
      assert.match(c.choices[0].message.content, /31 March/);
    });
    await check("not found", async () => {
      const c = await client.chat.completions.create({ model, messages: [{ role: "user", content: unknown }] });
      notFound(c.choices[0].message.content);
      assert.equal(c.metadata.assay_status, "not_found");
      assert.deepEqual(c.choices[0].message.annotations, []);
    });
    await check("responses", async () => {
      const r = await client.responses.create({ model, input: question, include: ["file_search_call.results"] });
      answered(r.output_text);
      assert.equal(r.status, "completed");
      assert.equal(r.metadata.assay_status, "answered");
      const [search, message] = r.output;
      assert.equal(search.type, "file_search_call");
      assert.match(search.results[0].text.replace(/\s+/g, " "), /^Up to five days/);
      const { annotations } = message.content[0];
      cited(annotations.find((a) => a.type === "url_citation"), r.output_text);
      assert.equal(annotations.find((a) => a.type === "file_citation").file_id, search.results[0].file_id);

      const next = await client.responses.create({ model, input: "And when do they expire?", previous_response_id: r.id });
      assert.match(next.output_text, /31 March/);
      assert.equal(next.previous_response_id, r.id);
      assert.equal((await client.responses.retrieve(r.id)).output[1].content[0].text, r.output_text);
      await client.responses.delete(r.id);
      await assert.rejects(client.responses.retrieve(r.id), (err) => err.status === 404);
    });
    await check("responses stream", async () => {
      let next = 0, text = "";
      const stream = client.responses.stream({ model, input: question });
      for await (const event of stream) {
        assert.equal(event.sequence_number, next++);
        if (event.type === "response.output_text.delta") text += event.delta;
      }
      const r = await stream.finalResponse();
      answered(text);
      assert.equal(r.output[1].content[0].text, text);
      cited(r.output[1].content[0].annotations[0], text);
    });
    await check("background", async () => {
      let r = await client.responses.create({ model, input: question, background: true });
      while (r.status === "in_progress") r = await client.responses.retrieve(r.id);
      answered(r.output[1].content[0].text);
    });
    await check("embeddings", async () => {
      const packed = await client.embeddings.create({ model: "assay-embedding", input: ["a text", "another"] });
      const plain = await client.embeddings.create({ model: "assay-embedding", input: "a text", encoding_format: "float" });
      assert.equal(packed.data.length, 2);
      assert.deepEqual(Array.from(packed.data[0].embedding, Math.fround), plain.data[0].embedding.map(Math.fround));
    });
    await check("errors", async () => {
      const options = { apiKey, maxRetries: 2 };
      const ask = (baseURL, extra) => new OpenAI({ ...options, baseURL, ...extra }).chat.completions.create({ model, messages });
      await assert.rejects(ask(url, { apiKey: token }), (err) => err instanceof OpenAI.AuthenticationError && err.code === "invalid_api_key");
      await assert.rejects(ask(limited), (err) => err instanceof OpenAI.RateLimitError && err.code === "insufficient_quota" && Number(err.headers.get("retry-after")) > 0);
      await assert.rejects(client.chat.completions.create({ model, messages, n: 2 }), (err) => err.status === 400 && err.param === "n");
    });
    await check("cancel", async () => {
      const far = new OpenAI({ baseURL: slow, apiKey });
      let r = await far.responses.create({ model, input: question, background: true });
      assert.equal((await far.responses.cancel(r.id)).status, "cancelled");
      while (r.status !== "cancelled") r = await far.responses.retrieve(r.id);
      while (!r.output.length) r = await far.responses.retrieve(r.id);
      assert.equal(r.metadata.assay_stop, "cancelled");
    });
    await check("error in a stream", async () => {
      const far = new OpenAI({ baseURL: slow, apiKey, maxRetries: 0 });
      const chat = await far.chat.completions.create({ model, messages, stream: true });
      const response = await far.responses.create({ model, input: question, stream: true });
      await fetch(stop);
      await assert.rejects(async () => {
        for await (const chunk of chat) assert.equal(chunk.choices[0].delta.content ?? "", "", "a draft is sent");
      }, OpenAI.APIError);
      await assert.rejects(async () => {
        for await (const event of response) assert.notEqual(event.type, "response.output_text.delta");
      }, OpenAI.APIError);
    });
  },

  async ai() {
    const { generateText, streamText, embedMany, APICallError, RetryError } = await import("ai");
    const { createOpenAI } = await import("@ai-sdk/openai");
    const provider = (baseURL, key = apiKey) => createOpenAI({ baseURL, apiKey: key });
    const openai = provider(url);

    await check("responses", async () => {
      const r = await generateText({ model: openai(model), prompt: question });
      answered(r.text);
      assert.ok(r.sources.some((s) => s.sourceType === "url" && /\/api\/v1\/documents\//.test(s.url)), JSON.stringify(r.sources));
      assert.equal(r.finishReason, "stop");
    });
    await check("responses stream", async () => {
      const r = streamText({ model: openai(model), prompt: question });
      let text = "";
      for await (const part of r.textStream) text += part;
      answered(text);
      assert.ok((await r.sources).length > 0);
    });
    await check("chat", async () => {
      const r = await generateText({ model: openai.chat(model), prompt: question });
      answered(r.text);
      assert.ok(r.sources.length > 0, "no sources");
    });
    await check("chat stream", async () => {
      const r = streamText({ model: openai.chat(model), prompt: question });
      let text = "";
      for await (const part of r.textStream) text += part;
      answered(text);
      assert.ok((await r.sources).length > 0, "no sources");
    });
    await check("not found", async () => {
      const r = await generateText({ model: openai.chat(model), prompt: unknown });
      notFound(r.text);
      assert.equal(r.sources.length, 0);
    });
    await check("embeddings", async () => {
      const { embeddings } = await embedMany({ model: openai.embedding("assay-embedding"), values: ["a text", "another"] });
      assert.equal(embeddings.length, 2);
    });
    await check("errors", async () => {
      const status = async (p, want) => {
        await assert.rejects(generateText({ model: p.chat(model), prompt: question, maxRetries: 0 }), (err) => (err.lastError ?? err).statusCode === want);
      };
      await status(provider(url, token), 401);
      await status(provider(limited), 429);
    });
    await check("error in a stream", async () => {
      let failed, text = "";
      const far = createOpenAI({
        baseURL: slow,
        apiKey,
        async fetch(...args) {
          const r = await fetch(...args);
          await fetch(stop);
          return r;
        },
      });
      const r = streamText({ model: far.chat(model), prompt: question, maxRetries: 0, onError() {} });
      for await (const part of r.fullStream) {
        if (part.type === "error") failed = part.error;
        if (part.type === "text-delta") text += part.text ?? part.delta ?? "";
      }
      assert.ok(failed, "no error");
      assert.equal(text, "");
    });
  },

  async langchain() {
    const { ChatOpenAI, OpenAIEmbeddings } = await import("@langchain/openai");
    const chat = (baseURL, extra = {}) => new ChatOpenAI({ model, apiKey, configuration: { baseURL }, maxRetries: 0, ...extra });

    await check("chat", async () => {
      const r = await chat(url).invoke(question);
      answered(r.content);
    });
    await check("chat stream", async () => {
      let text = "";
      for await (const chunk of await chat(url).stream(question)) text += chunk.content;
      answered(text);
    });
    await check("responses", async () => {
      const r = await chat(url, { useResponsesApi: true }).invoke(question);
      answered(r.content[0].text);
      assert.ok(r.content[0].annotations.some((a) => /citation/.test(a.type)), JSON.stringify(r.content));
      assert.match(JSON.stringify(r.additional_kwargs.tool_outputs), /Up to five days/);
    });
    await check("responses stream", async () => {
      let last;
      for await (const chunk of await chat(url, { useResponsesApi: true }).stream(question)) last = last ? last.concat(chunk) : chunk;
      answered(last.text);
    });
    await check("not found", async () => notFound((await chat(url).invoke(unknown)).content));
    await check("embeddings", async () => {
      const e = new OpenAIEmbeddings({ model: "assay-embedding", apiKey, configuration: { baseURL: url } });
      assert.equal((await e.embedDocuments(["a text", "another"])).length, 2);
      assert.ok((await e.embedQuery("a text")).length > 0);
    });
    await check("errors", async () => {
      await assert.rejects(chat(url, { apiKey: token }).invoke(question), (err) => err.status === 401);
      await assert.rejects(chat(limited).invoke(question), (err) => err.status === 429);
    });
  },

  async llamaindex() {
    const { OpenAI, OpenAIEmbedding } = await import("@llamaindex/openai");
    const llm = (baseURL, key = apiKey) => new OpenAI({ model, baseURL, apiKey: key, maxRetries: 0 });
    const messages = [{ role: "user", content: question }];

    await check("chat", async () => answered((await llm(url).chat({ messages })).message.content));
    await check("chat stream", async () => {
      let text = "";
      for await (const chunk of await llm(url).chat({ messages, stream: true })) text += chunk.delta;
      answered(text);
    });
    await check("not found", async () => notFound((await llm(url).chat({ messages: [{ role: "user", content: unknown }] })).message.content));
    await check("embeddings", async () => {
      const e = new OpenAIEmbedding({ model: "assay-embedding", baseURL: url, apiKey });
      assert.ok((await e.getTextEmbedding("a text")).length > 0);
    });
    await check("errors", async () => {
      await assert.rejects(llm(url, token).chat({ messages }), (err) => err.status === 401);
      await assert.rejects(llm(limited).chat({ messages }), (err) => err.status === 429);
    });
  },
};

await clients[process.argv[2]]();
