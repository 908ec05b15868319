//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// roles are what a child process can be.
var roles = map[string]func(*control, roleOptions) error{
	"upstream": runUpstream,
	"stdio":    runStdio,
	"proxy":    runProxy,
	"gateway":  runGateway,
	"hub":      runHub,
	"readers":  runReaders,
	"topics":   runTopics,
	"replicas": runReplicas,
	"groups":   runGroups,
	"tasks":    runTasks,
}

// roleOptions are a child's part of the command line.
type roleOptions struct {
	upstream string // host:port
	issuer   string // URL, for the gateway's servers that know their callers; empty for none
	audit    string // the file of the gateway's audit log; empty for none
	log      string // level of the gateway's log; "off" for none
	// collector is the URL for the traces of gateways that are observed; empty for none
	collector string
}

// options are the parent's part.
type options struct {
	only    string
	rounds  int
	streams int
	profile string
	log     string
}

// A part is one group of measurements.
type part struct {
	name string
	run  func(*bench) error
}

var parts = []part{
	{"calls", (*bench).calls},
	{"pairs", (*bench).pairs},
	{"access", (*bench).access},
	{"observed", (*bench).observed},
	{"groups", (*bench).groups},
	{"tasks", (*bench).tasks},
	{"latency", (*bench).latency},
	{"memory", (*bench).memory},
	{"logs", (*bench).logs},
	{"streams", (*bench).streams},
	{"sessions", (*bench).sessions},
	{"topics", (*bench).topics},
	{"replicas", (*bench).forwards},
	{"wrap", (*bench).wraps},
	{"sizes", (*bench).sizes},
}

func main() {
	var o options
	var ro roleOptions
	role := flag.String("role", "", "what a child process is; for bench itself")
	flag.StringVar(&ro.upstream, "upstream", "", "a child's upstream")
	flag.StringVar(&ro.issuer, "issuer", "", "a gateway's issuer")
	flag.StringVar(&ro.audit, "audit", "", "a gateway's audit log")
	flag.StringVar(&ro.collector, "collector", "", "where an observed gateway's traces go")
	flag.StringVar(&o.log, "log", "info", "level of the gateway's log, as serve's default; off for none")
	flag.StringVar(&o.only, "only", "", "parts to run, by comma: calls, pairs, access, observed, groups, tasks, latency, memory, logs, streams, sessions, topics, replicas, wrap, sizes")
	flag.IntVar(&o.rounds, "rounds", 12, "rounds of each measurement")
	flag.IntVar(&o.streams, "streams", 10_000, "listen streams")
	flag.StringVar(&o.profile, "profile", "", "write CPU and heap profiles of the gateway to `DIR`")
	flag.Parse()
	ro.log = o.log
	if *role != "" {
		exit(runRole(*role, ro))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runRole(name string, o roleOptions) error {
	f, ok := roles[name]
	if !ok {
		return fmt.Errorf("no role %q", name)
	}
	return f(newControl(os.Stdin, os.Stdout), o)
}

// A bench is one run of the parent.
type bench struct {
	ctx   context.Context // the run's: a bench is made and ends with it
	o     options
	table table
}

func run(ctx context.Context, o options) error {
	if err := checkFiles(o.streams); err != nil {
		return err
	}
	b := &bench{ctx: ctx, o: o}
	begin := time.Now()
	for _, p := range parts {
		if o.only != "" && !strings.Contains(","+o.only+",", ","+p.name+",") {
			continue
		}
		start := time.Now()
		if err := p.run(b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(os.Stderr, "bench: %s took %v\n", p.name, time.Since(start).Round(time.Millisecond))
	}
	b.table.print(os.Stdout)
	fmt.Printf("%d rounds, %v\n", o.rounds, time.Since(begin).Round(time.Second))
	return b.table.verdict()
}

// checkFiles says what to do where a process may not open enough files.
func checkFiles(streams int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if need := uint64(streams) + 500; limit.Cur < need {
		return fmt.Errorf("%d streams need %d open files in one process, the limit is %d; raise it (ulimit -n), or use -streams", streams, need, limit.Cur)
	}
	return nil
}
