-- Tenants that are being moved here have schemas before they have an entry in the registry.
ALTER TABLE schemas ADD COLUMN moving TEXT COLLATE "C" NOT NULL DEFAULT ''; -- name of the tenant; empty: it is not being moved
