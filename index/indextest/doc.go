// Package indextest holds every index to the contract of index.Index: [Run] has
// all of it. [Source] is the source that such tests need, in memory or in a file,
// [Churn] changes one at random, and [Check] compares what an index answers with
// what reading every document and computing every score from its definition
// gives.
//
// With ASSAY_LONG=1 in the environment the random tests take a hundred times as
// many steps; ASSAY_SEED repeats the one that failed.
package indextest
