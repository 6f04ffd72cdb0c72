package parse

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A language describes how to recognize comments and declarations in a source file.
type language struct {
	line  []string    // start of a comment that ends with the line
	block [][2]string // start and end of a comment that may span lines
	heads *lazyregexp.Regexp
}

// In heads, the first group is the indentation and the second the text of the heading.
var (
	cHeads = lazyregexp.New(`^()((?:typedef\s+)?(?:struct|class|enum|union|namespace)\s+[A-Za-z_][\w:]*(?:\s*[:{].*)?$|#define\s+[A-Za-z_]\w*\(|[A-Za-z_][\w \t*&:<>,~\[\]]*?[ \t*&]~?[A-Za-z_][\w:~]*\s*\()`)

	javaHeads = lazyregexp.New(`^(\s*)((?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|data|case|virtual|async|partial|inline|suspend|readonly|extern|synchronized|default)\s+)*` +
		`(?:(?:class|interface|enum|record|object|trait|struct|protocol|extension|namespace|actor|@interface)\s+[A-Za-z_]\w*|(?:fun|func|def)\s+(?:<[^>]*>\s*)?[\w.]+|init\s*\()|` +
		`(?:public|private|protected|internal)\s+(?:static\s+|final\s+|abstract\s+|synchronized\s+|async\s+|virtual\s+|override\s+)*[\w<>\[\],.? ]*?\w+\s*\()`)

	jsHeads = lazyregexp.New(`^(\s*)((?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:(?:async\s+)?function\*?\s+[\w$]+|class\s+[\w$]+|interface\s+[\w$]+|enum\s+[\w$]+|namespace\s+[\w$.]+|type\s+[\w$]+\s*(?:<[^=]*>)?\s*=)|(?:export\s+)?const\s+[\w$]+\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\(|function|[\w$]+\s*=>))`)

	pyHeads    = lazyregexp.New(`^(\s*)((?:async\s+)?def\s+\w+|class\s+\w+)`)
	rubyHeads  = lazyregexp.New(`^(\s*)((?:def|class|module|defmodule|defp)\s+[\w.:?!=]+)`)
	rustHeads  = lazyregexp.New(`^(\s*)((?:pub(?:\([^)]*\))?\s+)?(?:(?:async|unsafe|const|default)\s+|extern\s+"[^"]*"\s+)*(?:fn|struct|enum|trait|union|mod|type)\s+\w+|(?:unsafe\s+)?impl\b[^{]*|macro_rules!\s*\w+)`)
	shellHeads = lazyregexp.New(`^()((?:function\s+)?[\w:-]+\s*\(\)|function\s+[\w:-]+)`)
	sqlHeads   = lazyregexp.New(`(?i)^()((?:create|alter)\s+(?:or\s+replace\s+)?(?:(?:unique|temp|temporary|materialized|virtual)\s+)*(?:table|view|function|procedure|trigger|index|type|schema)\s+(?:if\s+not\s+exists\s+)?[\w."` + "`" + `\[\]]+)`)
	iniHeads   = lazyregexp.New(`^()(\[\[?[^\]=]+\]\]?)\s*(?:[#;].*)?$`)
	makeHeads  = lazyregexp.New(`^()([\w./%-]+(?:\s+[\w./%-]+)*)\s*:(?:[^=]|$)`)
	protoHeads = lazyregexp.New(`^(\s*)((?:message|service|enum|rpc|type|input|interface|extend)\s+\w+)`)
	tfHeads    = lazyregexp.New(`^()((?:resource|data|module|variable|output|provider|locals|terraform)(?:\s+"[^"]*")*)\s*\{`)
	phpHeads   = lazyregexp.New(`^(\s*)((?:(?:public|private|protected|static|final|abstract)\s+)*(?:function|class|interface|trait|enum|namespace|sub|package)\s+&?[\w\\:]+)`)
	luaHeads   = lazyregexp.New(`^(\s*)((?:local\s+)?function\s+[\w.:]+)`)
)

var (
	slashes   = []string{"//"}
	hash      = []string{"#"}
	starBlock = [][2]string{{"/*", "*/"}}

	cLang      = &language{slashes, starBlock, cHeads}
	javaLang   = &language{slashes, starBlock, javaHeads}
	jsLang     = &language{slashes, starBlock, jsHeads}
	pyLang     = &language{hash, [][2]string{{`"""`, `"""`}, {`'''`, `'''`}, {`r"""`, `"""`}}, pyHeads}
	rubyLang   = &language{hash, [][2]string{{"=begin", "=end"}, {`@moduledoc """`, `"""`}, {`@doc """`, `"""`}}, rubyHeads}
	rustLang   = &language{slashes, starBlock, rustHeads}
	shellLang  = &language{hash, nil, shellHeads}
	sqlLang    = &language{[]string{"--"}, starBlock, sqlHeads}
	iniLang    = &language{[]string{"#", ";"}, nil, iniHeads}
	makeLang   = &language{hash, nil, makeHeads}
	protoLang  = &language{[]string{"//", "#"}, starBlock, protoHeads}
	tfLang     = &language{[]string{"#", "//"}, starBlock, tfHeads}
	phpLang    = &language{[]string{"//", "#"}, starBlock, phpHeads}
	luaLang    = &language{[]string{"--"}, [][2]string{{"--[[", "]]"}}, luaHeads}
	hashLang   = &language{line: hash}
	cssLang    = &language{block: starBlock}
	slashLang  = &language{line: slashes, block: starBlock}
	markupLang = &language{block: [][2]string{{"<!--", "-->"}}}
	lispLang   = &language{line: []string{";"}}
	texLang    = &language{line: []string{"%"}}
	haskLang   = &language{line: []string{"--"}, block: [][2]string{{"{-", "-}"}}}
)

// languages maps file extensions to languages.
var languages = func() map[string]*language {
	m := map[string]*language{}
	for l, exts := range map[*language]string{
		cLang:      "c h cc cpp cxx hpp hh hxx m mm cu ino",
		javaLang:   "java kt kts cs scala swift groovy dart",
		jsLang:     "js mjs cjs jsx ts tsx mts cts vue svelte",
		pyLang:     "py pyi pyw pyx bzl star",
		rubyLang:   "rb rake gemspec ex exs cr",
		rustLang:   "rs",
		shellLang:  "sh bash zsh ksh fish bats awk",
		sqlLang:    "sql ddl",
		iniLang:    "ini cfg conf toml properties editorconfig desktop service",
		makeLang:   "mk make",
		protoLang:  "proto graphql gql thrift",
		tfLang:     "tf hcl tfvars",
		phpLang:    "php pl pm perl",
		luaLang:    "lua",
		hashLang:   "yaml yml r jl ps1 psm1 cmake dockerfile nix tcl gitignore env txtpb",
		cssLang:    "css scss less",
		slashLang:  "go zig v sv jsonc json5 gradle sol s asm",
		markupLang: "xml xsl xslt svg xsd plist csproj jsp ejs hbs",
		lispLang:   "lisp el clj cljs scm rkt",
		texLang:    "tex sty bib erl",
		haskLang:   "hs lhs elm ada adb",
	} {
		for e := range strings.FieldsSeq(exts) {
			m["."+e] = l
		}
	}
	return m
}()

// languageByName maps names of files without an extension to languages.
var languageByName = map[string]*language{
	"makefile": makeLang, "gnumakefile": makeLang, "dockerfile": hashLang, "containerfile": hashLang, "rakefile": rubyLang,
	"gemfile": rubyLang, "vagrantfile": rubyLang, "cmakelists.txt": hashLang, "jenkinsfile": javaLang, "build": pyLang, "workspace": pyLang,
	".bashrc": shellLang, ".zshrc": shellLang, ".profile": shellLang, ".gitconfig": iniLang, ".editorconfig": iniLang,
}

// sourceLanguage returns the language of src according to its name or its "#!" line, or nil if it
// is not recognized as source code.
func sourceLanguage(src *source) *language {
	if l := languageByName[strings.ToLower(src.name)]; l != nil {
		return l
	}
	if l := languages[src.ext]; l != nil {
		return l
	}
	first, _, _ := strings.Cut(src.text, "\n")
	if !strings.HasPrefix(first, "#!") {
		return nil
	}
	for _, known := range []struct {
		word string
		lang *language
	}{{"python", pyLang}, {"ruby", rubyLang}, {"node", jsLang}, {"perl", phpLang}, {"php", phpLang}, {"lua", luaLang}, {"make", makeLang}} {
		if strings.Contains(first, known.word) {
			return known.lang
		}
	}
	return shellLang
}
