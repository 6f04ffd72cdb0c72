//go:build !unix

package source

const openFlag = 0
