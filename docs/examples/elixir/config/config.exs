import Config

config :atoll,
  overlay: :hyparview,
  discovery: [file: "contacts"]
