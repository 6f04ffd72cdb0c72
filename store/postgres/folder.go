package postgres

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// wordOf returns the word in a file, which it creates with a random one if there is none. Processes that
// create it at the same time get the same word.
func wordOf(path string) (string, error) {
	const attempts = 2
	for range attempts {
		b, err := os.ReadFile(path)
		if word := strings.TrimSpace(string(b)); err == nil && word != "" {
			return word, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := linkWord(path); err != nil {
			return "", err
		}
	}
	return "", damaged("the file %s is empty", path)
}

// linkWord writes a file under another name and links it, so that an existing one is complete and
// never replaced.
func linkWord(path string) error {
	temp := path + "-" + rand.Text()
	if err := os.WriteFile(temp, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return err
	}
	err := os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(temp))
}
