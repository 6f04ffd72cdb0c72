package telemetry

// The operations of spans. The name of a span is its operation, followed by a space and the name of
// the strategy, source, model or tool if it has one.
const (
	opWorkflow  = "invoke_workflow"
	opReview    = "review"
	opRetrieval = "retrieval"
	opChat      = "chat"
	opEmbed     = "embeddings"
	opTool      = "execute_tool"
	opRerank    = "rerank"
	opPlan      = "plan"
	opGrade     = "grade"
	opGenerate  = "generate"
	opVerify    = "verify"
	opRole      = "role"
	opReader    = "compare"
	opRead      = "read"
	opCache     = "cache"
	opRung      = "rung"
	opClock     = "clock"
	opHuman     = "decide"
	opScope     = "scope"
	opStep      = "step"
)

// Attributes of OpenTelemetry's semantic conventions for generative AI (1.41, the last version that
// has them) and for HTTP.
const (
	attrOperation      = "gen_ai.operation.name"
	attrProvider       = "gen_ai.provider.name"
	attrRequestModel   = "gen_ai.request.model"
	attrResponseModel  = "gen_ai.response.model"
	attrFinish         = "gen_ai.response.finish_reasons"
	attrInputTokens    = "gen_ai.usage.input_tokens"
	attrOutputTokens   = "gen_ai.usage.output_tokens"
	attrCachedTokens   = "gen_ai.usage.cache_read.input_tokens"
	attrConversation   = "gen_ai.conversation.id"
	attrDataSource     = "gen_ai.data_source.id"
	attrWorkflow       = "gen_ai.workflow.name"
	attrTool           = "gen_ai.tool.name"
	attrTokenType      = "gen_ai.token.type"
	attrInputMessages  = "gen_ai.input.messages"
	attrOutputMessages = "gen_ai.output.messages"
	attrSystem         = "gen_ai.system_instructions"
	attrQueryText      = "gen_ai.retrieval.query.text"
	attrDocuments      = "gen_ai.retrieval.documents"
	attrToolArguments  = "gen_ai.tool.call.arguments"
	attrToolResult     = "gen_ai.tool.call.result"
	attrErrorType      = "error.type"

	attrMethod     = "http.request.method"
	attrRoute      = "http.route"
	attrStatusCode = "http.response.status_code"
)

// The event for a grade or a verdict, and its attributes.
const (
	eventEvaluation = "gen_ai.evaluation.result"
	attrEvalName    = "gen_ai.evaluation.name"
	attrEvalScore   = "gen_ai.evaluation.score.value"
	attrEvalLabel   = "gen_ai.evaluation.score.label"

	evalGrade   = "retrieval_sufficiency"
	evalVerdict = "claim_support"
)

// The event of steps that were taken from the journal, on the span of the run.
const (
	eventReplayed = "assay.steps.replayed"
	attrCount     = "assay.count"
)

// Attributes of assay.
const (
	attrStepPath      = "assay.step.path"
	attrStepKind      = "assay.step.kind"
	attrStepOrdinal   = "assay.step.ordinal"
	attrScope         = "assay.scope"
	attrResumed       = "assay.run.resumed"
	attrState         = "assay.run.state"
	attrStatus        = "assay.answer.status"
	attrReason        = "assay.answer.reason"
	attrStop          = "assay.answer.stop"
	attrStrategy      = "assay.answer.strategy"
	attrIterations    = "assay.answer.iterations"
	attrClaims        = "assay.answer.claims"
	attrInterventions = "assay.answer.interventions"
	attrCost          = "assay.usage.cost_micros"
	attrAttempts      = "assay.model.failed_attempts"
	attrRole          = "assay.role"
	attrPrompt        = "assay.prompt"
	attrHits          = "assay.retrieval.hits"
	attrTopRelevance  = "assay.retrieval.top_relevance"
	attrGrade         = "assay.grade"
	attrTexts         = "assay.texts"
	attrQuestion      = "assay.question"
	attrAnswer        = "assay.answer.text"
	attrCut           = "assay.texts.cut"
)

// Attributes of OpenInference, with Config.OpenInference.
const (
	attrOIKind     = "openinference.span.kind"
	attrOISession  = "session.id"
	attrOIModel    = "llm.model_name"
	attrOIProvider = "llm.provider"
	attrOIPrompt   = "llm.token_count.prompt"
	attrOIReply    = "llm.token_count.completion"
	attrOITotal    = "llm.token_count.total"
	attrOIInput    = "input.value"
	attrOIOutput   = "output.value"
	attrOIEmbed    = "embedding.model_name"
	attrOIReranker = "reranker.model_name"
	attrOITool     = "tool.name"

	oiDocument = "retrieval.documents.%d.document."
)

// Labels of metrics. Their values are bounded: see bounded.
const (
	labelStrategy = "strategy"
	labelStatus   = "status"
	labelStop     = "stop"
	labelState    = "state"
	labelKind     = "kind"
	labelRole     = "role"
	labelOutcome  = "outcome"
	labelAction   = "action"
	labelFirst    = "first_try"
	labelType     = "type"
	labelSignal   = "signal"
	labelMethod   = "method"
	labelRoute    = "route"
	labelCode     = "code"
)

// A metricKind is the kind of a metric.
type metricKind string

const (
	counter   metricKind = "counter"
	upDown    metricKind = "gauge" // goes up and down
	histogram metricKind = "histogram"
)

// A metric is the definition of a metric. In Prometheus a dot of the name becomes an underscore, the
// unit s the suffix _seconds, and a counter ends in _total.
type metric struct {
	name    string
	kind    metricKind
	unit    string // in the notation of UCUM
	help    string
	labels  []string
	buckets []float64
}

// Names of metrics.
const (
	metricTokens        = "gen_ai.client.token.usage"
	metricCallTime      = "gen_ai.client.operation.duration"
	metricFirstChunk    = "gen_ai.client.operation.time_to_first_chunk"
	metricRuns          = "assay.runs"
	metricRunTime       = "assay.run.duration"
	metricActive        = "assay.runs.active"
	metricGraded        = "assay.runs.graded"
	metricCapped        = "assay.runs.capped"
	metricIterations    = "assay.run.iterations"
	metricRelevance     = "assay.run.top_relevance"
	metricClaims        = "assay.claims"
	metricInterventions = "assay.grounding.interventions"
	metricSteps         = "assay.steps"
	metricStepTime      = "assay.step.duration"
	metricRoleTokens    = "assay.role.tokens"
	metricCost          = "assay.cost"
	metricRequests      = "assay.http.requests"
	metricRequestTime   = "assay.http.request.duration"
	metricOpen          = "assay.http.requests.active"
	metricExports       = "assay.telemetry.exports"
	metricJobs          = "assay.queue.jobs"
	metricJobTime       = "assay.queue.job.duration"
	metricJobWait       = "assay.queue.job.wait"
)

// Boundaries of histograms. Those of tokens, durations and first chunks are the ones that the
// semantic conventions advise.
var (
	tokenBuckets     = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576}
	callBuckets      = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	chunkBuckets     = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	runBuckets       = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160}
	stepBuckets      = []float64{0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	iterationBuckets = []float64{1, 2, 3, 4, 6, 8, 12, 16}
	shareBuckets     = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
	requestBuckets   = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
)

var callLabels = []string{attrOperation, attrProvider, attrRequestModel}

// metrics are all metrics.
var metrics = []metric{
	{metricRuns, counter, "1", "Runs that ended, failed, wait for a review or were interrupted.", []string{labelStrategy, labelStatus, labelStop, labelState}, nil},
	{metricRunTime, histogram, "s", "Active time of runs that have ended.", []string{labelStrategy, labelStatus}, runBuckets},
	{metricActive, upDown, "1", "Runs in progress in this process.", nil, nil},
	{metricGraded, counter, "1", "Answered runs whose evidence was graded, by whether the first grade of every sub-question was sufficient.", []string{labelStrategy, labelFirst}, nil},
	{metricCapped, counter, "1", "Answered runs whose search a limit ended: of iterations (if there was more than one), time, tokens, calls, money or a quota.", []string{labelStrategy}, nil},
	{metricIterations, histogram, "1", "Iterations of the answers.", []string{labelStrategy}, iterationBuckets},
	{metricRelevance, histogram, "1", "Relevance of the best passage of the runs that searched.", []string{labelStrategy}, shareBuckets},
	{metricClaims, counter, "1", "Drafted claims by their final verdict, supported or rejected.", []string{labelStrategy, labelOutcome}, nil},
	{metricInterventions, counter, "1", "Interventions of the verifier: claims that it dropped, claims whose citations were repaired, and answers whose whole draft was refused.", []string{labelStrategy, labelAction}, nil},
	{metricSteps, counter, "1", "Steps that were performed, by outcome: ok or error.", []string{labelKind, labelOutcome}, nil},
	{metricStepTime, histogram, "s", "Time of the steps that were performed; that of an enclosing step includes its inner ones.", []string{labelKind}, stepBuckets},
	{metricRoleTokens, counter, "1", "Tokens of language models by role; type is input or output.", []string{labelRole, labelType}, nil},
	{metricCost, counter, "1", "Cost of the steps that were performed, in the configured currency.", []string{labelKind}, nil},
	{metricTokens, histogram, "{token}", "Tokens of each call of a language model.", append([]string{attrTokenType}, callLabels...), tokenBuckets},
	{metricCallTime, histogram, "s", "Time of each call of a language model, an encoder or a reranker.", append([]string{attrErrorType}, callLabels...), callBuckets},
	{metricFirstChunk, histogram, "s", "Time from a call of a language model to the first piece of its text, if it is streamed.", callLabels, chunkBuckets},
	{metricRequests, counter, "1", "HTTP requests that were answered.", []string{labelMethod, labelRoute, labelCode}, nil},
	{metricRequestTime, histogram, "s", "Time of HTTP requests, to the end of the response.", []string{labelMethod, labelRoute, labelCode}, requestBuckets},
	{metricOpen, upDown, "1", "HTTP requests in progress.", nil, nil},
	{metricJobs, counter, "1", "Attempts of jobs that a worker has ended, by the state of the job afterwards.", []string{labelKind, labelState}, nil},
	{metricJobTime, histogram, "s", "Time of the attempts of jobs.", []string{labelKind}, requestBuckets},
	{metricJobWait, histogram, "s", "Time that jobs waited for an attempt.", []string{labelKind}, requestBuckets},
	{metricExports, counter, "1", "Exports to the OTLP receiver, by signal (traces, metrics) and outcome (ok, error).", []string{labelSignal, labelOutcome}, nil},
}
