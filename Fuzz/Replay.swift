import Foundation

/// `seeds FOLDER` writes the first inputs; `TARGET FOLDER...` runs a target once on each file of the folders, for the
/// coverage; `show FILE...` prints what an input holds, and what it holds once decoded and encoded by either program.
@main enum Replay {
  static func main() throws {
    var arguments = CommandLine.arguments.dropFirst()
    let command = arguments.popFirst() ?? ""
    if command == "seeds", let folder = arguments.popFirst() {
      for seed in try Seeds.all() {
        try seed.bytes.write(to: URL(filePath: folder).appending(path: seed.name))
        _ = try Root.of(seed.bytes, in: Root.own).again(seed.bytes)()
        // A seed that the changed program refuses is a poor one: nothing behind the refusal is reached.
        do { _ = try Root.of(seed.bytes, in: Root.changed).again(seed.bytes) } catch {
          print("changed refuses \(seed.name): \(error)")
        }
        Registry.unlinkAll()
      }
      return
    }
    if command == "show" { return try arguments.forEach(show) }
    guard let target = Target(rawValue: command) else {
      print("usage: seeds FOLDER | \(Target.allCases.map(\.rawValue).joined(separator: "|")) FOLDER...")
      exit(2)
    }
    var count = 0
    for folder in arguments {
      for file in try FileManager.default.contentsOfDirectory(
        at: URL(filePath: folder), includingPropertiesForKeys: nil)
      {
        let data = try Data(contentsOf: file)
        data.withUnsafeBytes { target.run(Seal.closed($0.bindMemory(to: UInt8.self).baseAddress, $0.count)) }
        count += 1
      }
    }
    print("\(target.rawValue): \(count) inputs")
  }

  private static func show(_ file: String) throws {
    let data = try Data(contentsOf: URL(filePath: file))
    let bytes = data.withUnsafeBytes { Seal.closed($0.bindMemory(to: UInt8.self).baseAddress, $0.count) }
    func text(_ title: String, _ step: () throws -> Data) {
      do { print(title, try ArchiveInspection(of: step()).text()) } catch { print(title, error) }
    }
    text("input:") { bytes }
    for (name, roots) in [("own", Root.own), ("changed", Root.changed)] {
      text("\(name), once:") { try Root.of(bytes, in: roots).again(bytes)() }
      text("\(name), twice:") {
        let root = Root.of(bytes, in: roots)
        return try root.again(root.again(bytes)())()
      }
    }
    Registry.unlinkAll()
  }
}
