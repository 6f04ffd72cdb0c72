package ui

// sourceRoutes are about sources of documents.
func sourceRoutes() []Route { return nil }
