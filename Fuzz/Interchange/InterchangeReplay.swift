import Foundation

/// `seeds FOLDER` writes the first inputs; `TARGET FOLDER...` runs a target once on each file of the folders, for the
/// coverage.
@main enum InterchangeReplay {
  static func main() throws {
    var arguments = CommandLine.arguments.dropFirst()
    let command = arguments.popFirst() ?? ""
    if command == "seeds", let folder = arguments.popFirst() {
      for (name, bytes) in try InterchangeSeeds.all() {
        try bytes.write(to: URL(filePath: folder).appending(path: name))
      }
      return
    }
    guard let target = InterchangeTarget(rawValue: command) else {
      print("usage: seeds FOLDER | \(InterchangeTarget.allCases.map(\.rawValue).joined(separator: "|")) FOLDER...")
      exit(2)
    }
    var count = 0
    for folder in arguments {
      for file in try FileManager.default.contentsOfDirectory(
        at: URL(filePath: folder), includingPropertiesForKeys: nil)
      {
        target.run(try Data(contentsOf: file))
        count += 1
      }
    }
    print("\(target.rawValue): \(count) inputs")
  }
}
