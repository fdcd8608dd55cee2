"""A page in the browser on which a person teaches a model, tries it, and sees what it keeps: `spacenet studio`."""
