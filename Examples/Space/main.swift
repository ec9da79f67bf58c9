import Foundation
import Keepsake

/// Returns what the player should do about an error, if the error itself doesn't contain it.
func advice(for error: any Error) -> String {
  switch (error as? StoreError)?.code {
  case .inUse:
    "Space is being played already with the same data: quit it there, or name another folder with --data FOLDER."
  case .notPermitted: "The folder can't be written: name another one with --data FOLDER."
  case .diskFull: "The disk is full: make some room and start again. What was saved before is kept."
  default: ""
  }
}

do {
  let options = try Options(Array(CommandLine.arguments.dropFirst()))
  func open() throws -> GameData { try GameData.open("com.example.space", at: options.data) }
  if options.prints {
    print(try open().saves.load(.main)?.bits ?? "nothing")
  } else {
    // Everything that can fail is checked before the terminal is changed.
    let terminal = try Terminal()
    let scenery = try Scenery(AssetLibrary(at: options.assets))
    try Game(try open(), scenery, terminal, options).play()
  }
} catch {
  let sentence = ["Space: \(error)", advice(for: error)].filter { !$0.isEmpty }.joined(separator: "\n")
  // If standard error is closed, the error can't be reported.
  try? FileHandle.standardError.write(contentsOf: Data((sentence + "\n").utf8))
  exit(1)
}
