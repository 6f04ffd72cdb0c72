package ui

// documentRoutes list, show, upload and search documents.
func documentRoutes() []Route { return nil }
