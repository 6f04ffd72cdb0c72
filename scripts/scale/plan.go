package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// Costs are what one chunk, question and step take. Times are milliseconds of processor time.
type Costs struct {
	Search       []Point `json:"search"`        // one hybrid search of so many chunks
	Answer       float64 `json:"answer"`        // a question without its searches
	Searches     float64 `json:"searches"`      // of a question
	Commits      float64 `json:"commits"`       // of a question: its steps, its begin and its end
	Commit       float64 `json:"commit"`        // time of a commit of one tenant's journal; they are in turn
	IndexBytes   float64 `json:"index_bytes"`   // of a chunk with its vector, in the index
	StoreBytes   float64 `json:"store_bytes"`   // of a chunk with its document and vector, in the store
	JournalBytes float64 `json:"journal_bytes"` // of a question
	Tokens       float64 `json:"tokens"`        // of a chunk
	EmbedTokens  float64 `json:"embed_tokens"`  // a second on one core

	Tenants    float64 `json:"tenants"`     // that share chunks and questions evenly
	ShardTo    float64 `json:"shard_to"`    // most chunks of a shard
	Replicas   float64 `json:"replicas"`    // of every shard and of the store
	Busy       float64 `json:"busy"`        // share of the processors that is planned with
	KeepDays   float64 `json:"keep_days"`   // of journals
	IngestDays float64 `json:"ingest_days"` // in which all chunks are to be embedded

	Prices []Price `json:"prices"`
}

// A Point is a measured cost at a size.
type Point struct {
	Chunks float64 `json:"chunks"`
	MS     float64 `json:"ms"`
}

// A Price is a cloud's list price. An amount of 0 is not known.
type Price struct {
	Cloud   string  `json:"cloud"`
	Machine string  `json:"machine"`
	Cores   float64 `json:"cores"`
	GiB     float64 `json:"gib"`
	Hour    float64 `json:"hour"` // dollars
	Disk    float64 `json:"disk"` // dollars for a GiB and a month
	Source  string  `json:"source"`
}

// measured returns the costs of docs/scale.md, which names the commands.
func measured() Costs {
	return Costs{
		Search:   []Point{{10_001, 0.242}, {200_000, 0.921}, {1_000_000, 4.75}},
		Answer:   20.9,
		Searches: 1,
		Commits:  4.5, Commit: 0.231,
		IndexBytes: 879, StoreBytes: 4420, JournalBytes: 20_300,
		Tokens: 193, EmbedTokens: 8426,
		Tenants: 1, ShardTo: 10e6, Replicas: 2, Busy: 0.6, KeepDays: 30, IngestDays: 7,
		Prices: []Price{
			{Cloud: "AWS", Machine: "m7g.large", Cores: 2, GiB: 8, Hour: 0.0816, Disk: 0.08, Source: "us-east-1, June 2026; gp3, 21 September 2026"},
			{Cloud: "Azure", Machine: "Standard_E8s_v5", Cores: 8, GiB: 64, Hour: 0.504, Disk: 946.08 / 8192, Source: "eastus, SkyPilot 098741e; P60 LRS, 23 September 2026"},
			{Cloud: "Google", Machine: "n2-highmem-2", Cores: 2, GiB: 16, Hour: 0.13101, Disk: 0.1, Source: "us-central1, SkyPilot 006059e; pd-balanced, 21 September 2026"},
		},
	}
}

// search returns the cost of a search of so many chunks. It is interpolated between the points and grows in
// proportion after the last.
func (c Costs) search(chunks float64) float64 {
	last := Point{}
	for _, p := range c.Search {
		if chunks <= p.Chunks {
			return last.MS + (p.MS-last.MS)*(chunks-last.Chunks)/(p.Chunks-last.Chunks)
		}
		last = p
	}
	return last.MS * chunks / last.Chunks
}

// A Plan is what an installation needs.
type Plan struct {
	Costs  Costs
	Chunks float64
	Rate   float64

	TenantChunks float64 // of one tenant
	Shards       float64 // of all tenants, without replicas
	SearchMS     float64 // processor time of all searches of a question
	SearchCores  float64
	ServerCores  float64
	EmbedCores   float64
	MemoryGB     float64 // indexes of all replicas, mapped
	IndexGB      float64 // of all replicas
	StoreGB      float64
	JournalGB    float64
	Commits      float64 // a second, of all tenants
	JournalBusy  float64 // share of the time in which the journal of one tenant commits
	Extrapolated bool    // a shard has more chunks than were measured
}

// NewPlan computes what chunks and questions a second need.
func NewPlan(c Costs, chunks, rate float64) (Plan, error) {
	for _, v := range []float64{chunks, rate, c.Tenants, c.ShardTo, c.Replicas, c.Busy, c.IngestDays, c.EmbedTokens} {
		if !(v > 0) || math.IsInf(v, 0) {
			return Plan{}, errors.New("want chunks, a rate, tenants, shard_to, replicas, busy, ingest_days and embed_tokens above 0")
		}
	}
	if len(c.Search) == 0 {
		return Plan{}, errors.New("want measured searches")
	}
	const gb = 1e9
	p := Plan{Costs: c, Chunks: chunks, Rate: rate, TenantChunks: chunks / c.Tenants}
	shards := math.Ceil(p.TenantChunks / c.ShardTo)
	p.Shards = shards * c.Tenants
	p.SearchMS = c.Searches * shards * c.search(p.TenantChunks/shards)
	p.SearchCores = rate * p.SearchMS / 1000 / c.Busy
	p.ServerCores = rate * c.Answer / 1000 / c.Busy
	p.EmbedCores = chunks * c.Tokens / c.EmbedTokens / (c.IngestDays * 86_400)
	p.IndexGB = chunks * c.IndexBytes * c.Replicas / gb
	p.MemoryGB = p.IndexGB
	p.StoreGB = chunks * c.StoreBytes * c.Replicas / gb
	p.JournalGB = rate * 86_400 * c.KeepDays * c.JournalBytes * c.Replicas / gb
	p.Commits = rate * c.Commits
	p.JournalBusy = p.Commits / c.Tenants * c.Commit / 1000
	p.Extrapolated = p.TenantChunks/shards > c.Search[len(c.Search)-1].Chunks
	return p, nil
}

// A Bill is what a plan costs in a month at one cloud; 0: a price is missing.
type Bill struct {
	Machines float64
	Compute  float64 // dollars
	Disks    float64 // dollars
}

// Bill returns the bill for machines that hold the indexes in memory.
func (p Plan) Bill(price Price) Bill {
	const hours, gibs = 730, 1.073741824
	cores := p.SearchCores + p.ServerCores
	b := Bill{Machines: math.Ceil(max(cores/price.Cores, p.MemoryGB/gibs/price.GiB))}
	b.Compute = b.Machines * price.Hour * hours
	b.Disks = (p.IndexGB + p.StoreGB + p.JournalGB) / gibs * price.Disk
	return b
}

// First returns what breaks first, with the metric that shows it.
func (p Plan) First() string {
	switch {
	case p.JournalBusy > p.Costs.Busy:
		return fmt.Sprintf("the journal of a tenant: its commits, which are in turn, take %.0f %% of the time", 100*p.JournalBusy)
	case p.SearchCores > p.ServerCores:
		return "the processors of the index, whose searches read every code of the tenant's vectors"
	}
	return "the processors of the servers"
}

// write prints the plan.
func (p Plan) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "chunks\t%.4g, of %.4g tenants\n", p.Chunks, p.Costs.Tenants)
	fmt.Fprintf(w, "questions a second\t%.4g\n", p.Rate)
	fmt.Fprintf(w, "shards\t%.4g, each %.4g times\n", p.Shards, p.Costs.Replicas)
	fmt.Fprintf(w, "processor time of a question\t%.4g ms in searches, %.4g ms elsewhere\n", p.SearchMS, p.Costs.Answer)
	fmt.Fprintf(w, "cores\t%.0f for searches, %.0f for servers\n", math.Ceil(p.SearchCores), math.Ceil(p.ServerCores))
	fmt.Fprintf(w, "cores to embed all in %.4g days\t%.0f\n", p.Costs.IngestDays, math.Ceil(p.EmbedCores))
	fmt.Fprintf(w, "memory for indexes\t%.4g GB\n", p.MemoryGB)
	fmt.Fprintf(w, "disks\t%.4g GB of indexes, %.4g of documents, %.4g of journals in %.4g days\n", p.IndexGB, p.StoreGB, p.JournalGB, p.Costs.KeepDays)
	fmt.Fprintf(w, "commits a second\t%.4g; a tenant's journal is busy for %.1f %%\n", p.Commits, 100*p.JournalBusy)
	for _, price := range p.Costs.Prices {
		b := p.Bill(price)
		fmt.Fprintf(w, "%s\t%.0f × %s: %s, disks %s a month (%s)\n", price.Cloud, b.Machines, price.Machine, dollars(b.Compute), dollars(b.Disks), price.Source)
	}
	fmt.Fprintf(w, "breaks first\t%s\n", p.First())
	if p.Extrapolated {
		fmt.Fprintf(w, "note\ta shard has more chunks than were measured: its searches are extrapolated in proportion\n")
	}
	return w.Flush()
}

func dollars(v float64) string {
	if v == 0 {
		return "look up"
	}
	return fmt.Sprintf("$%.0f", v)
}
