// Package source says where the bytes of documents come from: files, folders and
// standard input. [Walk] yields each [File] below the given roots in a fixed
// order, and a [Skip] with the reason for everything it passes over.
//
// What is read, and what is not:
//
//   - A root is a file, a folder or "-" for standard input. A root that is a
//     symbolic link is followed. One that does not exist, may not be read or
//     holds nothing is a [RootError]; the other roots are still walked.
//   - Folders are walked down, entries by name. .gitignore and .assayignore are
//     honoured in every folder from the root down (not above it), the latter
//     winning in the same folder; [Options.Exclude] wins over both.
//   - Left out unless .assayignore or Options.Exclude names them with "!": hidden
//     files and folders (a name that starts with a dot), version control
//     folders and node_modules. What patterns leave out is not reported.
//   - assay's own data directories, known by their marker, are never read.
//   - A symbolic link out of its root is not followed. A link inside is followed
//     when what it leads to is not reached by its own path, so that nothing is
//     read twice and no cycle is entered.
//   - Devices, sockets and named pipes are never opened.
//   - name.ext.metadata.json beside name.ext is its [Sidecar], not a document,
//     even where a pattern leaves it out.
//
// The package does not look into the bytes of a document; that is parse's.
package source
