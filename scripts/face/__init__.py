"""What a visitor sees first: pictures, film, plots and tables of README and site."""
