// Command image builds a container image of assay without a daemon, and checks one.
//
//	image build BINARY LAYOUT   write an OCI image layout with the static binary of Linux
//	image check LAYOUT ROOT     check the image, unpack its files into the folder ROOT, and print its
//	                            variables
//
// The image has the binary, a user, the root certificates of Mozilla and two empty folders, and no
// shell. The same binary gives the same image.
package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// userID is the user and the group that the image runs as: "nonroot" of distroless images.
const userID = 65532

// path is where the binary is.
const path = "/usr/local/bin/assay"

func main() {
	err := errors.New("usage: image build BINARY LAYOUT | image check LAYOUT ROOT")
	if len(os.Args) == 4 {
		switch os.Args[1] {
		case "build":
			err = build(os.Args[2], os.Args[3])
		case "check":
			err = check(os.Args[2], os.Args[3])
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// build writes the image layout.
func build(binary, dir string) error {
	arch, err := checkBinary(binary)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	root, err := layer(rootFiles())
	if err != nil {
		return err
	}
	program, err := layer([]file{{name: path, mode: 0o555, data: data}})
	if err != nil {
		return err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, root, program); err != nil {
		return err
	}
	if image, err = mutate.ConfigFile(image, config(image, arch)); err != nil {
		return err
	}
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return to.AppendImage(image, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
}

// config returns the configuration of the image.
func config(image v1.Image, arch string) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // the empty image has one
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", arch, v1.Time{Time: time.Unix(0, 0)}
	c.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", userID, userID),
		Entrypoint:   []string{path},
		Cmd:          []string{"serve", "--listen", "0.0.0.0:8484"},
		Env:          []string{"PATH=/usr/local/bin", "HOME=/data", "ASSAY_DATA=/data/store"},
		WorkingDir:   "/data",
		ExposedPorts: map[string]struct{}{"8484/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}},
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", path, "health"}, Interval: 30 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "assay",
			"org.opencontainers.image.source":   "https://github.com/assay-rag/assay",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return c
}

// A file is a file or, if it has no data and a mode of a folder, a folder of the image.
type file struct {
	name  string
	mode  os.FileMode
	owner int
	data  []byte
}

func rootFiles() []file {
	user := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/data:/sbin/nologin\n", userID, userID)
	group := fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", userID)
	return []file{
		{name: "/etc/passwd", mode: 0o444, data: []byte(user)},
		{name: "/etc/group", mode: 0o444, data: []byte(group)},
		{name: "/etc/ssl/certs/ca-certificates.crt", mode: 0o444, data: certificates()},
		{name: "/data", mode: 0o700 | os.ModeDir, owner: userID},
		{name: "/tmp", mode: 0o777 | os.ModeDir | os.ModeSticky},
	}
}

// certificates returns the root certificates of Mozilla as PEM.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file of PEM cannot say it
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			panic(err) // a buffer takes every write
		}
	}
	return out.Bytes()
}

// layer returns a layer with files and the folders that they are in.
func layer(files []file) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{}
	for _, f := range files {
		name := strings.TrimPrefix(f.name, "/")
		for i, c := range name {
			if dir := name[:i]; c == '/' && !made[dir] {
				made[dir] = true
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, Format: tar.FormatPAX}); err != nil {
					return nil, err
				}
			}
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(f.mode.Perm()), Uid: f.owner, Gid: f.owner, Size: int64(len(f.data)), Format: tar.FormatPAX}
		if f.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
		}
		if f.mode&os.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// checkBinary returns the architecture of a program, which must be one of Linux without an interpreter.
func checkBinary(binary string) (string, error) {
	f, err := elf.Open(binary)
	if err != nil {
		return "", fmt.Errorf("%s is no program of Linux: %w", binary, err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", fmt.Errorf("%s is not linked statically", binary)
	}
	arch, known := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	if !known {
		return "", fmt.Errorf("%s: the machine is %s", binary, f.Machine)
	}
	return arch, nil
}

// check checks the image of a layout and unpacks it.
func check(dir, root string) error {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("%d images, want 1", len(manifest.Manifests))
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	c, err := image.ConfigFile()
	if err != nil {
		return err
	}
	if err := checkConfig(c.Config); err != nil {
		return err
	}
	if err := unpack(image, root); err != nil {
		return err
	}
	if _, err := checkBinary(filepath.Join(root, path)); err != nil {
		return err
	}
	size := int64(0)
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return err
		}
		size += n
	}
	fmt.Fprintf(os.Stderr, "image: %s %s, %.1f MB compressed\n", c.Architecture, manifest.Manifests[0].Digest, float64(size)/1e6)
	fmt.Println(strings.Join(c.Config.Env, "\n"))
	return nil
}

// checkConfig checks how the image starts.
func checkConfig(c v1.Config) error {
	user, _, _ := strings.Cut(c.User, ":")
	switch {
	case user == "" || user == "0" || user == "root":
		return fmt.Errorf("the user is %q", c.User)
	case !slices.Equal(c.Entrypoint, []string{path}):
		return fmt.Errorf("the entry point is %q", c.Entrypoint)
	case slices.ContainsFunc(c.Env, func(v string) bool { return strings.Contains(v, "KEY") || strings.Contains(v, "TOKEN") }):
		return errors.New("a variable may be a secret")
	}
	return nil
}

// unpack writes the files of the image into a folder, and refuses those that it should not have.
func unpack(image v1.Image, root string) error {
	r := mutate.Extract(image)
	defer r.Close()
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := "/" + strings.TrimSuffix(h.Name, "/")
		if err := checkFile(name, h); err != nil {
			return err
		}
		to := filepath.Join(root, filepath.FromSlash(name))
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			continue
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, data, os.FileMode(h.Mode).Perm()); err != nil {
			return err
		}
	}
}

// checkFile checks the name, the kind and the rights of a file.
func checkFile(name string, h *tar.Header) error {
	shells := []string{"sh", "bash", "dash", "ash", "busybox", "zsh"}
	regular := h.Typeflag == tar.TypeReg
	switch {
	case !filepath.IsLocal(strings.TrimPrefix(name, "/")) && name != "/":
		return fmt.Errorf("%q leads out of the image", h.Name)
	case h.Typeflag != tar.TypeDir && !regular:
		return fmt.Errorf("%s is neither a file nor a folder", name)
	case slices.Contains(shells, filepath.Base(name)):
		return fmt.Errorf("%s is a shell", name)
	case h.Mode&0o6000 != 0:
		return fmt.Errorf("%s is setuid or setgid", name)
	case regular && (h.Mode&0o222 != 0 || h.Uid != 0):
		return fmt.Errorf("%s can be written", name)
	case name == "/data" && h.Uid != userID:
		return fmt.Errorf("/data belongs to %d", h.Uid)
	}
	return nil
}
