// Command schemas writes JSON schemas of Kubernetes' kinds for kubeconform, from the OpenAPI document
// in the module k8s.io/kubectl.
//
//	schemas DIRECTORY
//
// The schemas are strict: they refuse a field that Kubernetes does not know. The names of the files
// are those of kubeconform's default layout: KIND-GROUP-VERSION.json, and KIND-VERSION.json for the
// core group, in lower case.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const prefix = "#/definitions/"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schemas DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

// write writes a schema for each kind into a folder.
func write(dir string) error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubectl").Output()
	if err != nil {
		return fmt.Errorf("find the module of kubectl: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "testdata", "openapi", "swagger.json"))
	if err != nil {
		return err
	}
	var document struct {
		Definitions map[string]map[string]any
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return err
	}
	d := document.Definitions
	for _, definition := range d {
		closeObjects(definition)
	}
	for name, definition := range d {
		file, named := fileName(definition)
		if !named {
			continue
		}
		schema := map[string]any{"$schema": "http://json-schema.org/schema#", "$ref": prefix + name, "definitions": needed(d, name)}
		data, err := json.Marshal(schema)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// closeObjects makes schemas refuse unknown properties, and describes the two types that OpenAPI
// takes for plain strings.
func closeObjects(schema map[string]any) {
	switch schema["format"] {
	case "int-or-string":
		schema["type"] = []string{"string", "integer"}
	}
	if text, ok := schema["description"].(string); ok && strings.HasPrefix(text, "Quantity is a fixed-point") {
		schema["type"] = []string{"string", "number"}
	}
	delete(schema, "description")
	if schema["properties"] != nil {
		schema["additionalProperties"] = false
	}
	for _, value := range schema {
		switch value := value.(type) {
		case map[string]any:
			closeAll(value)
		}
	}
}

// closeAll calls closeObjects for a schema, or for the schemas of properties.
func closeAll(m map[string]any) {
	_, typed := m["type"].(string)
	_, refers := m["$ref"].(string)
	if typed || refers {
		closeObjects(m)
		return
	}
	for _, value := range m {
		if child, ok := value.(map[string]any); ok {
			closeAll(child)
		}
	}
}

// fileName returns the name of the file of a kind, if the definition is one.
func fileName(definition map[string]any) (string, bool) {
	kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
	if len(kinds) != 1 {
		return "", false
	}
	kind, _ := kinds[0].(map[string]any)
	parts := []string{fmt.Sprint(kind["kind"])}
	if group, _, _ := strings.Cut(fmt.Sprint(kind["group"]), "."); group != "" {
		parts = append(parts, group)
	}
	parts = append(parts, fmt.Sprint(kind["version"]))
	return strings.ToLower(strings.Join(parts, "-")) + ".json", true
}

// needed returns the definition with a name and all that it refers to.
func needed(all map[string]map[string]any, name string) map[string]any {
	found := map[string]any{}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if target, ok := v["$ref"].(string); ok {
				target = strings.TrimPrefix(target, prefix)
				if _, seen := found[target]; !seen {
					found[target] = all[target]
					visit(all[target])
				}
			}
			for _, child := range v {
				visit(child)
			}
		case []any:
			for _, child := range v {
				visit(child)
			}
		}
	}
	found[name] = all[name]
	visit(all[name])
	return found
}
