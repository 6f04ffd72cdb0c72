// Package entity finds what a passage names.
package entity
