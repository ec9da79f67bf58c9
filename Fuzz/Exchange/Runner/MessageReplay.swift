import Foundation

/// `seeds FIXTURES FOLDER` writes the first inputs from recorded messages; `FORM FOLDER...` checks each file of the
/// folders once, for the coverage.
@main enum MessageReplay {
  static func main() throws {
    var arguments = CommandLine.arguments.dropFirst()
    let command = arguments.popFirst() ?? ""
    if command == "seeds", let fixtures = arguments.popFirst(), let folder = arguments.popFirst() {
      for form in MessageCheck.Form.allCases {
        let place = URL(filePath: folder).appending(path: form.rawValue)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        for file in try files(in: fixtures) where file.pathExtension == form.fileExtension {
          guard let kind = MessageCheck.Kind(named: file.lastPathComponent) else { continue }
          try (Data([kind.rawValue]) + Data(contentsOf: file)).write(to: place.appending(path: file.lastPathComponent))
        }
      }
      return
    }
    guard let form = MessageCheck.Form(rawValue: command) else {
      let forms = MessageCheck.Form.allCases.map(\.rawValue).joined(separator: "|")
      print("usage: seeds FIXTURES FOLDER | \(forms) FOLDER...")
      exit(2)
    }
    let check = MessageCheck(form, scan: { _ in MessageCheck.Scan(isAdmitted: true, decodingBytes: 0) })
    var (count, decoded) = (0, 0)
    for folder in arguments {
      for file in try files(in: folder) {
        count += 1
        if try check.run(Data(contentsOf: file)) { decoded += 1 }
      }
    }
    print("\(form.rawValue): \(count) inputs, of which \(decoded) are decoded")
  }

  private static func files(in folder: String) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(at: URL(filePath: folder), includingPropertiesForKeys: nil)
  }
}
