package relational

import (
	"slices"
	"strings"
)

// CheckFileName checks the name of a lock or a setting, which becomes a file name.
func CheckFileName(name string) error {
	const most = 64
	ok := name != "" && len(name) <= most && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-_") == ""
	if !ok {
		return invalid("name %q: want up to %d of a-z, '-' and '_'", name, most)
	}
	return nil
}

// CheckTenantName checks that a name is a safe folder name on every system.
func CheckTenantName(name string) error { return checkFolderName("tenant", name) }

// checkFolderName checks a name that may become that of a folder.
func checkFolderName(what, name string) error {
	const most = 64
	ok := name != "" && len(name) <= most && name[0] != '.' && name[len(name)-1] != '.'
	for _, c := range name {
		ok = ok && ('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	if !ok || slices.Contains(deviceNames, name) {
		return invalid("%s name %q: want up to %d of a-z, 0-9, '-', '_' and '.', the last neither first nor last, and no device's name", what, name, most)
	}
	return nil
}

// deviceNames are not valid folder names on Windows.
var deviceNames = []string{
	"con", "prn", "aux", "nul",
	"com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
}
