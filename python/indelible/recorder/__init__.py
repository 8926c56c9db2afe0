"""The recorder of programs: what `indelible cc` builds into them."""
