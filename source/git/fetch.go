package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// openRepository opens the repository at the target, or the copy of a remote one.
func (r *repository) openRepository() error {
	if r.repo != nil {
		return nil
	}
	var err error
	if r.remote == nil {
		r.repo, err = gogit.PlainOpenWithOptions(r.config.Target, &gogit.PlainOpenOptions{EnableDotGitCommonDir: true})
		if errors.Is(err, gogit.ErrRepositoryNotExists) {
			return fmt.Errorf("there is no repository: %w", assay.ErrNotFound)
		}
		return err
	}
	var store storage.Storer = memory.NewStorage()
	if r.config.Dir != "" {
		store = filesystem.NewStorage(osfs.New(filepath.Join(r.config.Dir, "repository.git")), cache.NewObjectLRUDefault())
	}
	r.repo, err = gogit.Open(store, nil)
	if errors.Is(err, gogit.ErrRepositoryNotExists) {
		r.repo, err = gogit.Init(store, nil)
	}
	return err
}

// fetched is the reference to the last commit that was fetched.
const fetched = plumbing.ReferenceName("refs/assay/fetched")

// update returns the commit of the branch, which it fetches if the repository is remote. It is zero
// if the repository has no commit.
func (r *repository) update(ctx context.Context) (plumbing.Hash, error) {
	if err := r.openRepository(); err != nil {
		return plumbing.ZeroHash, err
	}
	if r.remote != nil {
		return r.fetch(ctx)
	}
	name := plumbing.HEAD
	if r.branch != "" {
		name = plumbing.NewBranchReferenceName(r.branch)
	}
	ref, err := r.repo.Reference(name, true)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		if r.branch != "" {
			return plumbing.ZeroHash, r.noBranch()
		}
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return ref.Hash(), nil
}

func (r *repository) noBranch() error {
	return fmt.Errorf("there is no branch %q: %w", r.branch, assay.ErrNotFound)
}

// fetch fetches the branch and all its history.
//
// Source: Git, Documentation/gitprotocol-http.txt.
func (r *repository) fetch(ctx context.Context) (plumbing.Hash, error) {
	session, err := r.session()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer session.Close()
	advertised, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, refused(err)
	}
	want, err := r.wantedCommit(advertised)
	if err != nil || want.IsZero() {
		return plumbing.ZeroHash, err
	}
	have, err := r.repo.Reference(fetched, true)
	if err == nil && have.Hash() == want {
		return want, nil
	}
	request := packp.NewUploadPackRequestFromCapabilities(advertised.Capabilities)
	request.Wants = []plumbing.Hash{want}
	if err == nil {
		request.Haves = []plumbing.Hash{have.Hash()}
	}
	if err := r.receive(ctx, session, request); err != nil {
		return plumbing.ZeroHash, err
	}
	return want, r.repo.Storer.SetReference(plumbing.NewHashReference(fetched, want))
}

// wantedCommit returns the commit of the branch among the references that the server has.
func (r *repository) wantedCommit(advertised *packp.AdvRefs) (plumbing.Hash, error) {
	if r.branch == "" {
		if advertised.Head == nil {
			return plumbing.ZeroHash, nil
		}
		return *advertised.Head, nil
	}
	hash, ok := advertised.References[plumbing.NewBranchReferenceName(r.branch).String()]
	if !ok {
		return plumbing.ZeroHash, r.noBranch()
	}
	return hash, nil
}

// receive stores the objects of a request.
func (r *repository) receive(ctx context.Context, session transport.UploadPackSession, request *packp.UploadPackRequest) error {
	response, err := session.UploadPack(ctx, request)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil // all objects are here
	}
	if err != nil {
		return refused(err)
	}
	var pack io.Reader = response
	switch {
	case request.Capabilities.Supports(capability.Sideband64k):
		pack = sideband.NewDemuxer(sideband.Sideband64k, response)
	case request.Capabilities.Supports(capability.Sideband):
		pack = sideband.NewDemuxer(sideband.Sideband, response)
	}
	if err := packfile.UpdateObjectStorage(r.repo.Storer, pack); err != nil {
		return errors.Join(fmt.Errorf("receive objects: %w: %w", err, assay.ErrUnavailable), response.Close())
	}
	return response.Close()
}

// session opens a session by the source's own HTTP client. A clone may take longer than one request
// of an API, so only ctx limits it.
func (r *repository) session() (transport.UploadPackSession, error) {
	endpoint, err := transport.NewEndpoint(r.remote.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, assay.ErrInvalid)
	}
	config, client := r.config, *r.config.HTTP
	client.Timeout = 0
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // go-git follows it, and without the credentials to another origin
	}
	config.HTTP = &client
	var auth transport.AuthMethod
	if r.token != "" {
		auth = &githttp.BasicAuth{Username: r.config.Options["user"], Password: r.token}
	}
	return githttp.NewClient(&http.Client{Transport: retrying{config}}).NewUploadPackSession(endpoint, auth)
}

// retrying is a transport that repeats transient failures.
type retrying struct{ config source.Config }

func (t retrying) RoundTrip(r *http.Request) (*http.Response, error) { return t.config.Do(r) }

// refused adds the kind to an error of a server.
func refused(err error) error {
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return fmt.Errorf("%w: %w", err, source.ErrCredentials)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fmt.Errorf("%w, or the token may not read it: %w", err, assay.ErrNotFound)
	case errors.Is(err, assay.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", err, assay.ErrUnavailable)
}

// read returns the content of a blob of at most limit bytes.
func (r *repository) read(uri string, hash plumbing.Hash, limit int64) ([]byte, error) {
	blob, err := r.repo.BlobObject(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, &source.Skip{URI: uri, Reason: source.Vanished, Detail: "is no longer in the repository", Err: err}
	}
	if err == nil && blob.Size > limit {
		return nil, source.Config{MaxBytes: limit}.TooLarge(uri, blob.Size)
	}
	var data []byte
	if err == nil {
		data, err = readAll(blob)
	}
	if err != nil {
		return nil, &source.Skip{URI: uri, Reason: source.Unreadable, Detail: "cannot be read: " + err.Error(), Err: err}
	}
	return data, nil
}
