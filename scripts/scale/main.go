// Command scale plans an installation and simulates it:
//
//   - record reads the journals of a data directory and writes one line per run: what its steps did and
//     how long each took
//   - simulate replays such runs at a rate, with queues for servers, shards, models and commits, and says
//     how long answers take, how busy each part is, and which one is the first to saturate
//   - check starts servers on a PostgreSQL server of this machine, records questions that they answer one at a time,
//     and compares what it then measures at some rates with what the simulation says
//   - plan computes shards, machines, storage and money from measured costs
//
// Usage:
//
//	go run ./scripts/scale record -data DIR [-tenant NAME] > runs.jsonl
//	go run ./scripts/scale simulate -trace runs.jsonl [-config FILE] [-rate 1000]
//	scripts/postgres go run ./scripts/scale check -set FOLDER [-servers 3] [-rates 0.5,1,1.5,2]
//	go run ./scripts/scale plan [-costs FILE] [-chunks 1e9] [-rate 1000] [-tenants 1]
//
// The forms of the files are those of Trace, Config and Costs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// run runs one command line.
func run(ctx context.Context, args []string, out io.Writer) error {
	commands := map[string]func(context.Context, []string, io.Writer) error{
		"record": runRecord, "simulate": runSimulate, "check": runCheck, "plan": runPlan,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("want record, simulate, check or plan, each with -h")
	}
	return commands[args[0]](ctx, args[1:], out)
}

func runRecord(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	data := flags.String("data", "", "data `directory`")
	tenant := flags.String("tenant", "default", "`name` of the tenant")
	limit := flags.Int("limit", 0, "record at most the newest `n` runs; 0: all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return record(ctx, *data, *tenant, *limit, out)
}

func runSimulate(_ context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	trace := flags.String("trace", "", "recorded runs `file`")
	config := flags.String("config", "", "configuration `file`; default: one server")
	rate := flags.Float64("rate", 0, "questions a second, instead of the configuration's")
	asJSON := flags.Bool("json", false, "print a JSON object")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c := defaultConfig()
	if *config != "" {
		if err := readJSON(*config, &c); err != nil {
			return err
		}
	}
	if *rate > 0 {
		c.Rate = *rate
	}
	runs, err := readTraces(*trace)
	if err != nil {
		return err
	}
	r, err := Simulate(c, runs)
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	return r.write(out)
}

func runPlan(_ context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	costs := flags.String("costs", "", "`file` of measured costs and prices; default: those of docs/scale.md")
	chunks := flags.Float64("chunks", 1e9, "number of chunks")
	rate := flags.Float64("rate", 1000, "questions a second")
	tenants := flags.Float64("tenants", 0, "tenants that share both evenly, instead of the costs'")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c := measured()
	if *costs != "" {
		if err := readJSON(*costs, &c); err != nil {
			return err
		}
	}
	if *tenants > 0 {
		c.Tenants = *tenants
	}
	p, err := NewPlan(c, *chunks, *rate)
	if err != nil {
		return err
	}
	return p.write(out)
}

// readJSON reads a file over the values of v. Unknown members are errors.
func readJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
