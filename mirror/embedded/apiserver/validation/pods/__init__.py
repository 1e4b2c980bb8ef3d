"""Rules of pods and of their templates."""
