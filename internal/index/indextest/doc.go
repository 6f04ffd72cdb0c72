// Package indextest tests that an index meets the contract of index.Index. [Run] runs all tests.
// [Source] is a source for such tests, in memory or in a file, and [Churn] changes one at random.
// [Check] compares the answers of an index with those of a model that reads every document and
// computes every score from its definition.
//
// With ASSAY_LONG=1 in the environment, the random tests take a hundred times as many steps.
// ASSAY_SEED repeats a run that failed.
package indextest
