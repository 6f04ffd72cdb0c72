// Package source provides the bytes of documents. A [Source] is a place outside where documents live,
// with a feed of changes; each kind of source is a package below this one, and package sourcetest
// tests their contract. For files, folders and standard input of this machine, [Walk]
// yields each [File] below the given roots in a fixed order, and a [Skip] with the reason for
// everything it skips.
//
// The rules are:
//
//   - A root is a file, a folder or "-" for standard input. A root that is a symbolic link is
//     followed. A root that does not exist, cannot be read or is empty is a [RootError]; the other
//     roots are still walked.
//   - Folders are walked recursively, entries by name. .gitignore and .assayignore are honoured in
//     every folder from the root down (not above it). In the same folder .assayignore takes
//     precedence, and [Options.Exclude] takes precedence over both.
//   - Hidden files and folders (names that start with a dot), version control folders and
//     node_modules are excluded unless .assayignore or Options.Exclude includes them with "!".
//     Excluded entries are not reported.
//   - assay's own data directories, which are recognized by their marker, are never read.
//   - A symbolic link out of its root is not followed. A link within the root is followed if its
//     target is not reached by its own path, so that nothing is read twice and cycles are not
//     entered.
//   - Devices, sockets and named pipes are never opened.
//   - name.ext.metadata.json beside name.ext is its [Sidecar], not a document, even if a pattern
//     excludes it.
//
// The package does not inspect the bytes of a document; package parse does.
package source
