-- What a person says the categories of a show are (guidespace correct); they replace what guides say of it.
CREATE TABLE corrections (
    show_key VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,            -- as the model has it, else as it was given
    categories VARCHAR[] NOT NULL,     -- labels of the model that served then
    corrected_at TIMESTAMP NOT NULL
);
